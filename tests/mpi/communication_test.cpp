// The laws of World and Communicator over MPI: every rank of `mpirun` runs this program. With
// --failures it runs the laws in which a rank fails, and leaves as the launcher would: with the
// code that was announced, if the laws held.
#include <memory>
#include <string_view>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/mpi_world.h"
#include "tests/unit/comm/communication_laws.h"

namespace ddp::comm {
namespace {

/// Ends a rank that hangs, and with it the job.
constexpr unsigned kWatchdogSeconds = 60;

/// Printed by all ranks but the first: failed checks only.
class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      fmt::print(stderr, "rank {}: {}:{}: {}\n", rank_, result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  int rank_;
};

class MpiLaw final : public testing::Test {
 public:
  MpiLaw(MpiSession& session, const Law& law) : session_(session), law_(law) {}
  void TestBody() override {
    const std::unique_ptr<World> world = make_mpi_world(session_);
    const std::unique_ptr<Communicator> communicator =
        make_mpi_communicator(session_, *world, kLawChunkBytes);
    law_.holds(*world, *communicator);
  }

 private:
  MpiSession& session_;
  Law law_;
};

void register_laws(MpiSession& session, const std::vector<Law>& laws) {
  for (const Law& law : laws) {
    if (law.least_ranks > session.size()) continue;
    testing::RegisterTest("Mpi", law.name, nullptr, nullptr, __FILE__, __LINE__,
                          [&session, law]() -> testing::Test* { return new MpiLaw(session, law); });
  }
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool failures = argc > 1 && std::string_view(argv[1]) == "--failures";
  alarm(kWatchdogSeconds);
  MpiSession session;
  register_laws(session, failures ? failure_laws() : communication_laws());
  if (session.rank() > 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(session.rank()));
  }

  int failed = RUN_ALL_TESTS();
  if (session.active()) MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (failed != 0) return 1;
  return session.given_up() ? static_cast<int>(ExitCode::kData) : 0;
}

}  // namespace
}  // namespace ddp::comm

int main(int argc, char** argv) { return ddp::comm::run(argc, argv); }
