#include "comm/fake/fake_cluster.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/backend/cpu/cpu_backend.h"
#include "tests/unit/comm/communication_laws.h"

namespace ddp::comm {
namespace {

std::vector<Law> all_laws() {
  std::vector<Law> laws = communication_laws();
  for (const Law& law : failure_laws()) laws.push_back(law);
  return laws;
}

class FakeLaws : public testing::TestWithParam<std::tuple<Law, int>> {};

int ranks_of(const std::tuple<Law, int>& parameter) {
  return std::max(std::get<1>(parameter), std::get<0>(parameter).least_ranks);
}

TEST_P(FakeLaws, Hold) {
  FakeCluster(ranks_of(GetParam()), kLawChunkBytes).run(std::get<0>(GetParam()).holds);
}

INSTANTIATE_TEST_SUITE_P(Communication, FakeLaws,
                         testing::Combine(testing::ValuesIn(all_laws()), testing::Values(1, 3, 4)),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", std::get<0>(instance.param).name,
                                              ranks_of(instance.param));
                         });

TEST(FakeCluster, RunsTheBodyOncePerRank) {
  std::atomic<int> ranks_seen = 0;
  FakeCluster(5).run([&](World& world, Communicator&) { ranks_seen += 1 << world.rank(); });
  EXPECT_EQ(ranks_seen, 0b11111);
}

TEST(FakeCluster, ThrowsTheFirstExceptionAndWakesTheOtherRanks) {
  try {
    FakeCluster(3).run([](World& world, Communicator&) {
      if (world.rank() == 2) throw DataError("labels.gz", "is missing");
      world.barrier();
    });
    FAIL() << "nothing was thrown";
  } catch (const DataError& e) {
    EXPECT_STREQ(e.what(), "labels.gz: is missing");
  }
}

TEST(FakeCluster, SumsInRankOrder) {
  // (1e8 - 1e8) + 1 is 1 in float; any other order loses the 1.
  FakeCluster(3).run([](World& world, Communicator& communicator) {
    constexpr std::array<float, 3> kTerms = {1e8F, -1e8F, 1.0F};
    float value = kTerms[static_cast<std::size_t>(world.rank())];
    cpu::HostEvent after, signal;
    const Collective collective{.label = "value"};
    communicator.post(collective, {&value, {{1}, DType::kF32}}, after, signal);
    signal.wait();
    EXPECT_EQ(value, 1.0F);
  });
}

TEST(OrderedCommunicator, DestructionGivesUpWorkInFlightAndCompletesItsEvents) {
  FakeCluster(2).run([](World& world, Communicator& communicator) {
    if (world.rank() == 1) return;
    // Rank 1 never posts. The cluster destroys the communicator after this body, so memory and
    // events outlive it.
    static std::vector<float> values;
    static cpu::HostEvent after, signal;
    static const Collective kCollective{.label = "never"};
    values.resize(10);
    communicator.post(kCollective, {values.data(), {{10}, DType::kF32}}, after, signal);
  });
}

TEST(OrderedCommunicator, RefusesWhatItCannotDo) {
  cpu::HostEvent after, signal;
  float value = 0;
  const Collective collective{.label = "value"};
  FakeCluster(1).run([&](World&, Communicator& communicator) {
    EXPECT_THROW(communicator.post(collective, {&value, {{1}, DType::kF32}}, after, signal),
                 InternalError);
  });
  FakeCluster(2).run([&](World&, Communicator& communicator) {
    EXPECT_THROW(communicator.post(collective, {&value, {{2}, DType::kBF16}}, after, signal),
                 InternalError);
  });
}

}  // namespace
}  // namespace ddp::comm
