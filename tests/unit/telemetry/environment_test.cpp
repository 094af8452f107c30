#include "core/telemetry/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/base/version.h"

namespace ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Environment, RecordsOnlyAllowedVariables) {
  constexpr std::array<const char*, 11> kVariables{"PATH=/bin",
                                                   "OMP_NUM_THREADS=2",
                                                   "AWS_SECRET_ACCESS_KEY=hidden",
                                                   "NCCL_DEBUG=INFO",
                                                   "SLURM_JOB_ID=7",
                                                   "SLURM_JWT=hidden",
                                                   "OMPI_COMM_WORLD_SIZE=4",
                                                   "OMPI_MCA_orte_jobid_key=hidden",
                                                   "CUDA_VISIBLE_DEVICES=a=b",
                                                   "malformed",
                                                   nullptr};
  EXPECT_THAT(recorded_variables(kVariables.data()),
              ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "a=b"), Pair("NCCL_DEBUG", "INFO"),
                          Pair("OMPI_COMM_WORLD_SIZE", "4"), Pair("OMP_NUM_THREADS", "2"),
                          Pair("SLURM_JOB_ID", "7")));
}

TEST(Environment, HoldsWhatExplainsARun) {
  const Environment environment{
      .command_line = {"ddptrain", "train", "--out", "r 1"},
      .working_directory = "/home/user",
      .date = 1'000'000'000,
      .library_versions = {{"mpi", "Open MPI 4.1.4"}},
      .ranks = {{"node0", "CPU, 2 threads", 2}, {"node1", "CPU, 4 threads", 4}},
      .variables = {{"OMP_NUM_THREADS", "2"}},
  };
  const auto json = nlohmann::ordered_json::parse(environment_json(environment));
  EXPECT_EQ(json["command_line"].dump(), R"(["ddptrain","train","--out","r 1"])");
  EXPECT_EQ(json["working_directory"], "/home/user");
  EXPECT_EQ(json["date"], "2001-09-09T01:46:40Z");
  EXPECT_EQ(json["ranks"].dump(),
            R"([{"rank":0,"host":"node0","device":"CPU, 2 threads","threads":2},)"
            R"({"rank":1,"host":"node1","device":"CPU, 4 threads","threads":4}])");
  EXPECT_EQ(json["variables"].dump(), R"({"OMP_NUM_THREADS":"2"})");
  const auto& versions = json["versions"];
  EXPECT_EQ(versions["ddptrain"], version());
  EXPECT_EQ(versions["commit"], commit());
  EXPECT_EQ(versions["mpi"], "Open MPI 4.1.4");
  for (const char* key : {"compiler", "protobuf", "kernel", "operating_system"})
    EXPECT_FALSE(versions[key].get<std::string>().empty()) << key;
  EXPECT_THAT(versions["kernel"].get<std::string>(), ::testing::StartsWith("Linux "));
}

TEST(Environment, IsJsonEvenForBytesThatAreNoText) {
  Environment environment;
  environment.working_directory = "/home/\xff";
  EXPECT_TRUE(nlohmann::json::accept(environment_json(environment)));
}

}  // namespace
}  // namespace ddp
