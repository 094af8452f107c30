#include "comm/rendezvous.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/fake/fake_cluster.h"

namespace ddp::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kLong = 60s;  // never reached
constexpr auto kShort = 50ms;

TEST(Rendezvous, PassesEveryStageWhenAllRanksCome) {
  FakeCluster(4).run([](World& world, Communicator&) {
    Rendezvous rendezvous(world, kLong);
    for (int stage = 0; stage < 20; ++stage) {
      rendezvous.meet("start");
      int polls = 0;
      rendezvous.reach("connections", [&] { return ++polls > world.rank(); });
    }
    Rendezvous(world, kLong).meet("another one of the same world");
  });
}

/// What rank 0 of `ranks` says when those in `away` do not come to the second stage.
std::string sentence(int ranks, const std::vector<int>& away, std::vector<std::string> places) {
  std::string said;
  try {
    FakeCluster(ranks).run([&](World& world, Communicator&) {
      Rendezvous rendezvous(world, kShort, places);
      rendezvous.meet("start");
      world.barrier();
      if (std::ranges::find(away, world.rank()) != away.end()) return;
      try {
        rendezvous.meet("connections");
        world.barrier();
      } catch (const PeerFailed& e) {
        EXPECT_EQ(e.failure().rank, 0);
        throw;
      }
    });
  } catch (const CommunicationError& e) {
    said = e.what();
  }
  return said;
}

TEST(Rendezvous, NamesTheRankThatStaysAwayAndItsHost) {
  EXPECT_THAT(sentence(3, {2}, {"a, GPU 0", "a, GPU 1", "b, GPU 0"}),
              HasSubstr("connections: after 0.05 s, rank 2 (b, GPU 0) is not there"));
}

TEST(Rendezvous, NamesAllRanksThatStayAway) {
  EXPECT_THAT(sentence(4, {1, 3}, {"a", "a", "b", "b"}),
              HasSubstr("ranks 1, 3 (1: a; 3: b) are not there"));
  EXPECT_THAT(sentence(5, {1, 2, 3}, {}), HasSubstr("ranks 1-3 are not there"));
}

TEST(Rendezvous, NamesThisRankWhenItIsNotDone) {
  try {
    FakeCluster(2).run([](World& world, Communicator&) {
      Rendezvous(world, kShort).reach("connections", [&] { return world.rank() == 1; });
      world.barrier();
    });
    FAIL() << "nothing was thrown";
  } catch (const CommunicationError& e) {
    EXPECT_THAT(e.what(), HasSubstr("after 0.05 s, rank 0 is not there"));
  }
}

TEST(Rendezvous, EndsWithTheFailureOfAnotherRank) {
  try {
    FakeCluster(3).run([](World& world, Communicator&) {
      if (world.rank() == 1) throw DataError("labels.gz", "is missing");
      Rendezvous(world, kLong).meet("start");
      world.barrier();
    });
    FAIL() << "nothing was thrown";
  } catch (const DataError& e) {
    EXPECT_STREQ(e.what(), "labels.gz: is missing");
  }
}

}  // namespace
}  // namespace ddp::comm
