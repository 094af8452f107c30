// The communicator over NCCL against sums computed on the host: every rank of `mpirun` runs this
// program, each on the GPU of its local rank. With --missing the last rank stays away from the
// start, and rank 0 must name it in time.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "comm/mpi/mpi_world.h"
#include "comm/nccl_communicator.h"
#include "core/backend/cuda_backend.h"
#include "core/tensor/bfloat16.h"

namespace ddp::comm {
namespace {

constexpr int kSkipped = 77;  // what ctest shows as skipped
/// Ends a rank that hangs, and with it the job.
constexpr unsigned kWatchdogSeconds = 300;

World* world = nullptr;
Backend* gpu = nullptr;

/// Printed by all ranks but the first: failed checks only.
class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", world->rank(), result.file_name(),
                   result.line_number(), result.message());
  }
};

/// Memory for collectives with `values` in it.
template <class T>
class OnGpu {
 public:
  OnGpu(Communicator& communicator, const std::vector<T>& values, bool symmetric)
      : size_(values.size()),
        memory_(symmetric ? allocate_symmetric(communicator, *gpu, bytes())
                          : gpu->allocate(bytes())) {
    put(values);
  }
  TensorView view() const {
    return {memory_.data(), {{static_cast<std::int64_t>(size_)}, dtype_of<T>}};
  }
  void put(const std::vector<T>& values) {
    gpu->upload(memory_.data(), values.data(), bytes());
    gpu->compute().synchronize();
  }
  std::vector<T> get() const {
    std::vector<T> values(size_);
    gpu->download(values.data(), memory_.data(), bytes());
    return values;
  }

 private:
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::size_t size_;
  Buffer memory_;
};

/// Posts one collective that starts when the compute stream is there, and waits for it.
void run(Communicator& communicator, const Collective& collective, TensorView data) {
  const std::unique_ptr<Event> after = gpu->make_event(), signal = gpu->make_event();
  gpu->compute().record(*after);
  communicator.post(collective, data, *after, *signal);
  signal->wait();
  communicator.check();
}

/// Element i of rank r.
template <class T>
T element(int rank, std::size_t i) {
  return T(static_cast<double>(rank + 1) + static_cast<double>(i % 1009) / 3.0);
}

template <class T>
std::vector<T> elements(int rank, std::size_t size) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = element<T>(rank, i);
  return values;
}

/// All-reduces of odd sizes; `epsilon` is that of T.
template <class T>
void sums_are_right(Communicator& communicator, double epsilon, bool symmetric) {
  constexpr std::size_t kLargest = 3'000'017;
  OnGpu<T> memory(communicator, std::vector<T>(kLargest), symmetric);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{255},
        std::size_t{1025}, std::size_t{100'003}, kLargest}) {
    std::vector<T> values = elements<T>(world->rank(), kLargest);
    memory.put(values);
    TensorView part = memory.view();
    part.type.shape = {static_cast<std::int64_t>(size)};
    run(communicator, {.label = "values"}, part);

    const std::vector<T> result = memory.get();
    double worst = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double expected = 0;
      for (int rank = 0; rank < world->size(); ++rank)
        expected += static_cast<double>(element<T>(rank, i));
      const double error = std::abs(static_cast<double>(result[i]) - expected) / expected;
      worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
    }
    // n - 1 additions, each rounded by half an epsilon.
    EXPECT_LE(worst, world->size() * epsilon) << size << " elements";
    std::size_t touched = 0;
    for (std::size_t i = size; i < kLargest; ++i) {
      if (static_cast<double>(result[i]) != static_cast<double>(values[i])) ++touched;
    }
    EXPECT_EQ(touched, 0U) << "of those beyond the " << size << " that are summed";

    const std::string mine(reinterpret_cast<const char*>(result.data()), size * sizeof(T));
    if (size <= 100'003) {
      for (const std::string& theirs : world->gather(mine))
        EXPECT_TRUE(theirs == mine) << "ranks hold different sums of " << size << " elements";
    }
  }
}

constexpr double kEpsilonBf16 = 1.0 / 128;

void all_sums_are_right(const NcclOptions& options, bool symmetric) {
  const std::unique_ptr<Communicator> communicator = make_nccl_communicator(*world, *gpu, options);
  sums_are_right<float>(*communicator, std::numeric_limits<float>::epsilon(), symmetric);
  sums_are_right<double>(*communicator, std::numeric_limits<double>::epsilon(), symmetric);
  sums_are_right<BFloat16>(*communicator, kEpsilonBf16, symmetric);
}

/// Communication needs others: with one rank there is a communicator, which cannot post.
class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (world->size() == 1) GTEST_SKIP() << "started with one rank";
  }
};

TEST(NcclAlone, IsMadeButCannotPost) {
  if (world->size() > 1) GTEST_SKIP() << "started with several ranks";
  const std::unique_ptr<Communicator> communicator = make_nccl_communicator(*world, *gpu, {});
  EXPECT_EQ(communicator->size(), 1);
  const OnGpu<float> memory(*communicator, {1, 2, 3}, /*symmetric=*/true);
  EXPECT_EQ(memory.get(), (std::vector<float>{1, 2, 3}));
  const std::unique_ptr<Event> event = gpu->make_event();
  EXPECT_THROW(communicator->post({}, memory.view(), *event, *event), InternalError);
}

TEST_F(Nccl, SumsOrdinaryMemory) { all_sums_are_right({}, /*symmetric=*/false); }
TEST_F(Nccl, SumsRegisteredMemory) { all_sums_are_right({}, /*symmetric=*/true); }
TEST_F(Nccl, SumsMemoryOfNcclWithoutWindows) {
  all_sums_are_right({.windows = false}, /*symmetric=*/true);
}

TEST_F(Nccl, BroadcastsFromAnyRoot) {
  const std::unique_ptr<Communicator> communicator = make_nccl_communicator(*world, *gpu, {});
  OnGpu<std::uint8_t> memory(*communicator, std::vector<std::uint8_t>(10'001), false);
  for (int root = 0; root < world->size(); ++root) {
    memory.put(std::vector<std::uint8_t>(10'001, static_cast<std::uint8_t>(world->rank() + 1)));
    run(*communicator,
        {.kind = CollectiveKind::kBroadcast, .root = root, .sequence = -1, .label = "weights"},
        memory.view());
    EXPECT_EQ(memory.get(), std::vector<std::uint8_t>(10'001, static_cast<std::uint8_t>(root + 1)));
  }
}

TEST_F(Nccl, RunsInTheOrderOfPostsAndAfterTheirEvents) {
  // Each sum multiplies by n through one buffer, and each compute stream copy between two of them
  // starts anew from what it finds: n^k only if everything runs one after the other.
  const std::unique_ptr<Communicator> communicator = make_nccl_communicator(*world, *gpu, {});
  constexpr int kCalls = 500;
  OnGpu<double> memory(*communicator, std::vector<double>(513, 1.0), /*symmetric=*/true);
  std::vector<Collective> collectives(kCalls);
  std::vector<std::unique_ptr<Event>> after, signal;
  std::vector<double> restart(513, 1.0);
  for (std::size_t k = 0; k < kCalls; ++k) {
    after.push_back(gpu->make_event());
    signal.push_back(gpu->make_event());
    if (k % 20 == 0) gpu->upload(memory.view().data, restart.data(), memory.view().bytes());
    gpu->compute().record(*after.back());
    collectives[k] = {.sequence = static_cast<int>(k), .label = fmt::format("bucket {}", k)};
    communicator->post(collectives[k], memory.view(), *after.back(), *signal.back());
    gpu->compute().wait_for(*signal.back());
    communicator->check();
  }
  gpu->compute().synchronize();
  for (const std::unique_ptr<Event>& event : signal) EXPECT_TRUE(event->done());
  EXPECT_EQ(memory.get(), std::vector<double>(513, std::pow(world->size(), 20)));
}

TEST_F(Nccl, HoldsManyCollectivesInFlight) {
  const std::unique_ptr<Communicator> communicator = make_nccl_communicator(*world, *gpu, {});
  constexpr std::size_t kSize = 1 << 20;
  std::vector<OnGpu<float>> buckets;
  std::vector<std::unique_ptr<Event>> after, signal;
  std::vector<Collective> collectives(8);
  for (std::size_t k = 0; k < collectives.size(); ++k)
    buckets.emplace_back(*communicator, std::vector<float>(kSize, static_cast<float>(k + 1)),
                         /*symmetric=*/k % 2 == 0);
  for (std::size_t k = 0; k < collectives.size(); ++k) {
    after.push_back(gpu->make_event());
    signal.push_back(gpu->make_event());
    gpu->compute().record(*after.back());
    communicator->post(collectives[k], buckets[k].view(), *after.back(), *signal.back());
  }
  for (const std::unique_ptr<Event>& event : signal) event->wait();
  communicator->check();
  for (std::size_t k = 0; k < buckets.size(); ++k)
    EXPECT_EQ(buckets[k].get(), std::vector<float>(kSize, static_cast<float>(k + 1) *
                                                              static_cast<float>(world->size())));
}

TEST_F(Nccl, CanBeMadeAndDestroyedAgain) {
  for (int round = 0; round < 3; ++round) {
    std::optional<OnGpu<float>> survivor;
    const auto begin = std::chrono::steady_clock::now();
    {
      const std::unique_ptr<Communicator> communicator = make_nccl_communicator(*world, *gpu, {});
      survivor.emplace(*communicator, std::vector<float>(1000, 1.0F), /*symmetric=*/true);
      const OnGpu<float> freed_first(*communicator, std::vector<float>(1000), /*symmetric=*/true);
      run(*communicator, {.label = "ones"}, survivor->view());
    }
    EXPECT_EQ(survivor->get(), std::vector<float>(1000, static_cast<float>(world->size())));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    world->barrier();
  }
}

TEST_F(Nccl, IsAbandonedInBoundedTime) {
  // Only rank 0 posts: its collective would never end.
  std::unique_ptr<Communicator> communicator =
      make_nccl_communicator(*world, *gpu, {.windows = false});
  OnGpu<float> memory(*communicator, std::vector<float>(1000, 1.0F), /*symmetric=*/false);
  const std::unique_ptr<Event> after = gpu->make_event(), signal = gpu->make_event();
  const Collective collective{.label = "alone"};
  gpu->compute().record(*after);
  if (world->rank() == 0) communicator->post(collective, memory.view(), *after, *signal);
  world->barrier();
  const auto begin = std::chrono::steady_clock::now();
  abandon(*communicator);
  EXPECT_THROW(communicator->check(), CommunicationError);
  communicator.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  world->barrier();
}

TEST_F(Nccl, DeterministicSumsAreTheSameBytesInEveryRun) {
  std::vector<std::vector<float>> results;
  for (int round = 0; round < 3; ++round) {
    const std::unique_ptr<Communicator> communicator =
        make_nccl_communicator(*world, *gpu, {.deterministic = true});
    OnGpu<float> memory(*communicator, elements<float>(world->rank(), 1'000'003), true);
    run(*communicator, {.label = "values"}, memory.view());
    results.push_back(memory.get());
  }
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_TRUE(results[0] == results[2]);
}

/// The last rank never comes; rank 0 must say so. Leaves with the code of that failure, as the
/// launcher would, if it did.
int check_missing_rank() {
  const int last = world->size() - 1;
  if (world->rank() == last) {
    sleep(20);  // until the job is ended
    return 1;
  }
  std::string said;
  try {
    make_nccl_communicator(*world, *gpu, {.init_timeout_seconds = 2});
  } catch (const PeerFailed& e) {
    said = e.what();
  } catch (const CommunicationError& e) {
    said = e.what();
    world->announce({world->rank(), e.code(), said});
  }
  std::fprintf(stderr, "rank %d: %s\n", world->rank(), said.c_str());
  const bool named = said.find(fmt::format("rank {} is not there", last)) != std::string::npos;
  return static_cast<int>(named ? ExitCode::kCommunication : ExitCode::kInternal);
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  alarm(kWatchdogSeconds);
  MpiSession session;
  const std::unique_ptr<World> job = make_mpi_world(session);
  world = job.get();
  const char* required = std::getenv("DDP_REQUIRE_GPUS");
  const std::vector<cuda::GpuInfo> gpus = cuda::visible_gpus();
  if (static_cast<std::size_t>(job->local_size()) > gpus.size()) {
    if (job->rank() == 0)
      std::fprintf(stderr, "%d ranks on this host need as many GPUs, but there are %zu\n",
                   job->local_size(), gpus.size());
    return required != nullptr ? 1 : kSkipped;
  }
  const std::unique_ptr<Backend> backend = cuda::make_backend({.ordinal = job->local_rank()});
  gpu = backend.get();
  if (argc > 1 && std::string_view(argv[1]) == "--missing") return check_missing_rank();
  if (job->rank() > 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  std::int64_t failed = RUN_ALL_TESTS();
  job->sum({&failed, 1});
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ddp::comm

int main(int argc, char** argv) { return ddp::comm::run(argc, argv); }
