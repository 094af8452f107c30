#include "core/comm/world.h"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include "comm/fake/fake_cluster.h"

namespace ddp::comm {
namespace {

/// What all of three ranks are told when `section` runs on each of them.
Failure agreed(const std::function<void(int rank)>& section) {
  std::vector<Failure> told(3);
  FakeCluster(3).run([&](World& world, Communicator&) {
    try {
      agree(world, [&] { section(world.rank()); });
    } catch (const AgreedFailure& failure) {
      told[static_cast<std::size_t>(world.rank())] = failure.failure();
      EXPECT_EQ(failure.what(), failure.failure().sentence);
      EXPECT_EQ(failure.code(), failure.failure().code);
    }
  });
  for (const Failure& failure : told) {
    EXPECT_EQ(failure.rank, told[0].rank);
    EXPECT_EQ(failure.code, told[0].code);
    EXPECT_EQ(failure.sentence, told[0].sentence);
  }
  return told[0];
}

TEST(Agree, PassesWhereNoRankFails) {
  EXPECT_EQ(agreed([](int) {}).sentence, "");
}

TEST(Agree, TellsAllRanksTheErrorOfTheLowestThatFailed) {
  const Failure failure = agreed([](int rank) {
    if (rank == 1) throw StorageError("disk of rank 1 is full");
    if (rank == 2) throw ConfigError("rank 2 has another flag");
  });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_EQ(failure.sentence, "disk of rank 1 is full");
}

TEST(Agree, AnErrorThatIsTheSameEverywhereIsNoSingleRanks) {
  const Failure failure = agreed([](int) { throw ConfigError("--lr: 1 2 is no number"); });
  EXPECT_EQ(failure.rank, kAllRanks);
  EXPECT_EQ(failure.code, ExitCode::kUsage);
  EXPECT_EQ(failure.sentence, "--lr: 1 2 is no number");
}

TEST(Agree, GivesEveryExceptionAnExitCode) {
  EXPECT_EQ(agreed([](int) { throw std::bad_alloc(); }).code, ExitCode::kMemory);
  EXPECT_EQ(agreed([](int) { throw std::out_of_range("map"); }).code, ExitCode::kInternal);
}

}  // namespace
}  // namespace ddp::comm
