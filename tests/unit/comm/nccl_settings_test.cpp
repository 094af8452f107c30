#include "comm/nccl_settings.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/nccl_communicator.h"
#include "comm/solo.h"
#include "core/base/error.h"

namespace ddp::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Sets a variable of the environment for the time of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(NcclSettings, AreThoseOfTheEnvironmentByName) {
  const Variable other("MY_NCCL_SETTING", "no");
  const Variable interface("NCCL_SOCKET_IFNAME", "=eth0");
  const Variable debug("NCCL_DEBUG", "INFO");
  const NcclVariables variables = nccl_variables();
  EXPECT_EQ(variables.at("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(variables.at("NCCL_SOCKET_IFNAME"), "=eth0");
  EXPECT_FALSE(variables.contains("MY_NCCL_SETTING"));
  EXPECT_THAT(nccl_settings(), HasSubstr("NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME==eth0"));
}

TEST(NcclSettings, SayWhenThereAreNone) { EXPECT_EQ(describe_nccl_variables({}), "none set"); }

TEST(NcclSettings, DeterministicTrainingNeedsRingUnlessItIsSet) {
  EXPECT_TRUE(needs_deterministic_algorithm({}));
  EXPECT_TRUE(needs_deterministic_algorithm({{"NCCL_ALGO", ""}, {"NCCL_PROTO", "LL"}}));
  EXPECT_FALSE(needs_deterministic_algorithm({{"NCCL_ALGO", "Ring"}}));
  EXPECT_FALSE(needs_deterministic_algorithm({{"NCCL_ALGO", "RING"}}));
}

TEST(NcclSettings, AnotherAlgorithmContradictsDeterministicTraining) {
  for (const char* value : {"Tree", "Ring,Tree", "^Ring", "NVLS", "allreduce:tree"}) {
    try {
      needs_deterministic_algorithm({{"NCCL_ALGO", value}});
      ADD_FAILURE() << value << " is accepted";
    } catch (const ConfigError& e) {
      EXPECT_EQ(e.code(), ExitCode::kUsage);
      EXPECT_THAT(e.what(), AllOf(HasSubstr("--deterministic needs NCCL_ALGO=Ring"),
                                  HasSubstr(std::string("NCCL_ALGO=") + value)));
    }
  }
}

TEST(NcclSettings, RequestSetsTheAlgorithmAndKeepsWhatTheUserSet) {
  unsetenv("NCCL_ALGO");
  request_deterministic_algorithm();
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), kDeterministicAlgorithm);
  const Variable mine("NCCL_ALGO", "ring");
  request_deterministic_algorithm();
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "ring");
}

#ifndef DDP_HAS_CUDA
TEST(NcclCommunicator, SaysThatTheBuildHasNoCuda) {
  SoloWorld world("here");
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  try {
    make_nccl_communicator(world, *backend, {});
    FAIL() << "there is no NCCL to be had";
  } catch (const DeviceError& e) {
    EXPECT_THAT(e.what(), HasSubstr("built without CUDA"));
  }
}
#endif

TEST(NcclCommunicator, LeavesOtherCommunicatorsTheMemoryOfTheirBackend) {
  SoloCommunicator communicator;
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const Buffer buffer = allocate_symmetric(communicator, *backend, 100);
  EXPECT_EQ(buffer.size(), 100U);
  abandon(communicator);
}

}  // namespace
}  // namespace ddp::comm
