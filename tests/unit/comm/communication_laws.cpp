#include "tests/unit/comm/communication_laws.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/polling.h"
#include "core/backend/cpu/cpu_backend.h"

namespace ddp::comm {
namespace {

using cpu::HostEvent;
using testing::AllOf;
using testing::HasSubstr;

template <class T>
TensorView view_of(std::vector<T>& values) {
  return {values.data(), {{static_cast<std::int64_t>(values.size())}, dtype_of<T>}};
}

/// Posts one collective that may start at once and waits for it.
template <class T>
void run(Communicator& communicator, const Collective& collective, std::vector<T>& values) {
  HostEvent after, signal;
  communicator.post(collective, view_of(values), after, signal);
  signal.wait();
}

/// Element i of rank r, with a fraction that floats have to round.
template <class T>
T element(int rank, std::size_t i) {
  return static_cast<T>(static_cast<double>(rank + 1) + static_cast<double>(i % 1009) / 3.0);
}

template <class T>
void all_reduces_to_the_sum(Communicator& communicator) {
  int step = 0;
  for (const std::size_t size : {1U, 2U, 3U, 7U, 255U, 1024U, 1025U, 100'003U}) {
    std::vector<T> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = element<T>(communicator.rank(), i);
    run(communicator, {.sequence = step++, .label = "values"}, values);
    communicator.check();

    double worst = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double expected = 0, magnitude = 0;
      for (int rank = 0; rank < communicator.size(); ++rank) {
        expected += static_cast<double>(element<T>(rank, i));
        magnitude += std::abs(static_cast<double>(element<T>(rank, i)));
      }
      worst = std::max(worst, std::abs(static_cast<double>(values[i]) - expected) / magnitude);
    }
    // n - 1 additions, each rounded by half an epsilon.
    EXPECT_LE(worst, communicator.size() * std::numeric_limits<T>::epsilon())
        << size << " elements";
  }
}

void all_reduce_sums_float(World&, Communicator& communicator) {
  all_reduces_to_the_sum<float>(communicator);
}
void all_reduce_sums_double(World&, Communicator& communicator) {
  all_reduces_to_the_sum<double>(communicator);
}

void all_reduce_sums_int64_exactly(World&, Communicator& communicator) {
  const std::int64_t large = std::int64_t{1} << 53;
  std::vector<std::int64_t> values = {large + 1, communicator.rank(), -1};
  run(communicator, {.label = "counts"}, values);
  const std::int64_t n = communicator.size();
  EXPECT_EQ(values, (std::vector<std::int64_t>{n * (large + 1), n * (n - 1) / 2, -n}));
}

void all_ranks_get_the_same_bytes(World& world, Communicator& communicator) {
  std::vector<float> values(100'003);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = element<float>(communicator.rank(), i * i);
  run(communicator, {.label = "values"}, values);
  const std::string mine(reinterpret_cast<const char*>(values.data()),
                         values.size() * sizeof(float));
  for (const std::string& theirs : world.gather(mine)) EXPECT_TRUE(theirs == mine);
}

void broadcast_copies_from_any_root(World&, Communicator& communicator) {
  for (int root = 0; root < communicator.size(); ++root) {
    std::vector<std::uint8_t> values(10'001, static_cast<std::uint8_t>(communicator.rank() + 1));
    run(communicator, {.kind = CollectiveKind::kBroadcast, .root = root, .label = "weights"},
        values);
    communicator.check();
    EXPECT_EQ(values, std::vector<std::uint8_t>(10'001, static_cast<std::uint8_t>(root + 1)));
  }
}

void collectives_run_in_the_order_they_were_posted(World&, Communicator& communicator) {
  // Each multiplies by n through one buffer: n^k only if they run one after the other.
  constexpr std::size_t kCalls = 20;
  std::vector<Collective> collectives(kCalls);
  std::vector<HostEvent> after(kCalls), signal(kCalls);
  std::vector<double> values(513, 1.0);
  for (std::size_t k = 0; k < kCalls; ++k) {
    collectives[k] = {.sequence = static_cast<int>(k), .label = fmt::format("bucket {}", k)};
    communicator.post(collectives[k], view_of(values), after[k], signal[k]);
  }
  signal.back().wait();
  for (HostEvent& event : signal) EXPECT_TRUE(event.done());
  communicator.check();
  EXPECT_EQ(values, std::vector<double>(513, std::pow(communicator.size(), kCalls)));
}

void collective_waits_for_its_event_and_hides_behind_compute(World&, Communicator& communicator) {
  std::vector<double> values(257, 0.0);
  const Collective collective{.label = "gradients"};
  HostEvent after, signal;
  after.reset();
  communicator.post(collective, view_of(values), after, signal);
  EXPECT_FALSE(signal.done());
  // Written after posting: only a communicator that waits for `after` sums these values.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (double& value : values) value = 1.0;
  after.complete();

  // The calling thread never touches the communicator again until the sum is there.
  double work = 0;
  for (int i = 1; !signal.done(); ++i) work += 1.0 / i;
  communicator.check();
  EXPECT_GT(work, 0.0);
  EXPECT_EQ(values, std::vector<double>(257, static_cast<double>(communicator.size())));
}

void world_sums_gathers_and_broadcasts(World& world, Communicator&) {
  const int n = world.size();
  std::vector<std::int64_t> counts = {1, world.rank(), std::int64_t{1} << 60};
  world.sum(counts);
  EXPECT_EQ(counts[0], n);
  EXPECT_EQ(counts[1], n * (n - 1) / 2);

  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 1000), 'x') + '\0' + "end";
  };
  const std::vector<std::string> all = world.gather(text_of(world.rank()));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(n));
  for (int rank = 0; rank < n; ++rank)
    EXPECT_EQ(all[static_cast<std::size_t>(rank)], text_of(rank));
  EXPECT_EQ(world.gather(""), std::vector<std::string>(static_cast<std::size_t>(n)));

  for (int root = 0; root < n; ++root)
    EXPECT_EQ(world.broadcast(text_of(world.rank()), root), text_of(root));
  EXPECT_EQ(world.broadcast("", 0), "");
  world.barrier();
  EXPECT_FALSE(world.announced());
}

void world_knows_who_stays_away(World& world, Communicator&) {
  const int last = world.size() - 1;
  const auto forever = [] {};
  for (int round = 0; round < 3; ++round) {
    if (world.rank() == 0) {
      EXPECT_EQ(world.missing(1)[0], 0) << "rank 0 has not come to the next one itself";
    }
    if (world.rank() != last) world.arrive();
    if (world.rank() == 0) {
      // The others' word takes a moment.
      poll_until([&] { return world.missing().size() == 1; }, forever);
      EXPECT_EQ(world.missing(), std::vector<int>{last});
    }
    world.barrier();
    if (world.rank() == last) world.arrive();
    poll_until([&] { return world.missing().empty(); }, forever);
    world.barrier();
  }
}

void world_knows_its_place(World& world, Communicator& communicator) {
  EXPECT_EQ(world.rank(), communicator.rank());
  EXPECT_EQ(world.size(), communicator.size());
  EXPECT_FALSE(world.host_name().empty());
  EXPECT_LE(world.local_size(), world.size());
  const auto hosts = world.gather(fmt::format("{} {}", world.host_name(), world.local_rank()));
  for (std::size_t a = 0; a < hosts.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(hosts[a], hosts[b]);
}

void agree_throws_the_lowest_failing_rank_everywhere(World& world, Communicator&) {
  try {
    agree(world, [&] {
      if (world.rank() > 0) throw DataError("images.gz", "is cut short on rank {}", world.rank());
    });
    FAIL() << "agree() did not throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kData);
    EXPECT_THAT(e.what(), HasSubstr("is cut short on rank 1"));
  }
}

/// The error all ranks get when the last one posts `wrong` and the others post `right`.
template <class Wrong>
std::string mismatch(Communicator& communicator, const Collective& right, const Collective& wrong,
                     std::vector<Wrong> wrong_values) {
  const bool deviates = communicator.rank() == communicator.size() - 1;
  std::vector<float> right_values(100, 1.0F);
  if (deviates) {
    run(communicator, wrong, wrong_values);
  } else {
    run(communicator, right, right_values);
    EXPECT_EQ(right_values, std::vector<float>(100, 1.0F))
        << "data was exchanged in spite of a mismatch";
  }
  try {
    communicator.check();
  } catch (const CommunicationError& e) {
    // Whatever is posted now ends at once, so that the step can run to its end.
    std::vector<float> more(10, 2.0F);
    run(communicator, right, more);
    EXPECT_EQ(more, std::vector<float>(10, 2.0F));
    return e.what();
  }
  ADD_FAILURE() << "check() did not throw";
  return "";
}

void expect_named(const Communicator& communicator, const std::string& sentence,
                  const std::string& wrong) {
  const int last = communicator.size() - 1;
  EXPECT_THAT(sentence, AllOf(HasSubstr("\"bucket 1\" of 100 F32"),
                              HasSubstr(fmt::format("rank {} posted {}", last, wrong))));
  if (communicator.size() > 2) {
    EXPECT_THAT(sentence, HasSubstr(fmt::format("majority is against rank {}.", last)));
  }
}

const Collective kBucket{.sequence = 7, .label = "bucket 1"};

void mismatching_count_is_named_on_all_ranks(World&, Communicator& communicator) {
  expect_named(communicator, mismatch(communicator, kBucket, kBucket, std::vector<float>(99)),
               "all-reduce \"bucket 1\" of 99 F32 as collective 7 of the plan");
}

void mismatching_dtype_is_named_on_all_ranks(World&, Communicator& communicator) {
  expect_named(communicator, mismatch(communicator, kBucket, kBucket, std::vector<double>(100)),
               "all-reduce \"bucket 1\" of 100 F64 as collective 7 of the plan");
}

void mismatching_label_is_named_on_all_ranks(World&, Communicator& communicator) {
  const Collective wrong{.sequence = 7, .label = "bucket 2"};
  expect_named(communicator, mismatch(communicator, kBucket, wrong, std::vector<float>(100)),
               "all-reduce \"bucket 2\" of 100 F32 as collective 7 of the plan");
}

void mismatching_kind_is_named_on_all_ranks(World&, Communicator& communicator) {
  const Collective wrong{
      .kind = CollectiveKind::kBroadcast, .root = 1, .sequence = 7, .label = "bucket 1"};
  expect_named(communicator, mismatch(communicator, kBucket, wrong, std::vector<float>(100)),
               "broadcast \"bucket 1\" of 100 F32 from rank 1 as collective 7 of the plan");
}

const Failure kFailure{1, ExitCode::kData, "train-images.gz, record 812: the file is cut short"};

template <class Wait>
void wakes_with_peer_failed(World& world, const Wait& wait) {
  if (world.rank() == 1) {
    // Gives the others time to be inside their wait.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return world.announce(kFailure);
  }
  try {
    wait();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const PeerFailed& e) {
    EXPECT_EQ(e.failure().rank, 1);
    EXPECT_EQ(e.code(), ExitCode::kData);
    EXPECT_EQ(e.failure().sentence, kFailure.sentence);
  }
}

void announced_failure_wakes_ranks_that_wait_in_a_collective(World& world,
                                                             Communicator& communicator) {
  wakes_with_peer_failed(world, [&] {
    std::vector<float> values(100'000);
    run(communicator, kBucket, values);
    communicator.check();
  });
}

void announced_failure_wakes_ranks_whose_event_never_completes(World& world,
                                                               Communicator& communicator) {
  wakes_with_peer_failed(world, [&] {
    std::vector<float> values(100);
    HostEvent after, signal;
    after.reset();
    communicator.post(kBucket, view_of(values), after, signal);
    signal.wait();
    communicator.check();
  });
}

void announced_failure_wakes_ranks_that_wait_in_the_world(World& world, Communicator&) {
  wakes_with_peer_failed(world, [&] { world.barrier(); });
}

}  // namespace

std::vector<Law> communication_laws() {
  return {
      {"AllReduceSumsFloat", all_reduce_sums_float, 2},
      {"AllReduceSumsDouble", all_reduce_sums_double, 2},
      {"AllReduceSumsInt64Exactly", all_reduce_sums_int64_exactly, 2},
      {"AllRanksGetTheSameBytes", all_ranks_get_the_same_bytes, 2},
      {"BroadcastCopiesFromAnyRoot", broadcast_copies_from_any_root, 2},
      {"CollectivesRunInTheOrderTheyWerePosted", collectives_run_in_the_order_they_were_posted, 2},
      {"CollectiveWaitsForItsEventAndHidesBehindCompute",
       collective_waits_for_its_event_and_hides_behind_compute, 2},
      {"WorldSumsGathersAndBroadcasts", world_sums_gathers_and_broadcasts},
      {"WorldKnowsWhoStaysAway", world_knows_who_stays_away, 2},
      {"WorldKnowsItsPlace", world_knows_its_place},
      {"AgreeThrowsTheLowestFailingRankEverywhere", agree_throws_the_lowest_failing_rank_everywhere,
       2},
      {"MismatchingCountIsNamedOnAllRanks", mismatching_count_is_named_on_all_ranks, 2},
      {"MismatchingDtypeIsNamedOnAllRanks", mismatching_dtype_is_named_on_all_ranks, 2},
      {"MismatchingLabelIsNamedOnAllRanks", mismatching_label_is_named_on_all_ranks, 2},
      {"MismatchingKindIsNamedOnAllRanks", mismatching_kind_is_named_on_all_ranks, 2},
  };
}

std::vector<Law> failure_laws() {
  return {
      {"AnnouncedFailureWakesRanksThatWaitInACollective",
       announced_failure_wakes_ranks_that_wait_in_a_collective, 2},
      {"AnnouncedFailureWakesRanksWhoseEventNeverCompletes",
       announced_failure_wakes_ranks_whose_event_never_completes, 2},
      {"AnnouncedFailureWakesRanksThatWaitInTheWorld",
       announced_failure_wakes_ranks_that_wait_in_the_world, 2},
  };
}

}  // namespace ddp::comm
