#include "core/train/parameters.h"

#include <algorithm>
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/fake/fake_cluster.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/training/training.h"

namespace ddp::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const DatasetInfo kImages{.image = Shape{12, 12, 1}, .classes = 10, .mean = {0.3}, .stddev = {0.2}};

/// One rank's program with memory, its parameters not yet initialised.
struct Rank {
  explicit Rank(TrainingRun with) : run(std::move(with)) {}
  std::vector<NamedTensor> exported() { return export_parameters(program, *backend, memory); }
  void initialize() { initialize_parameters(program, *backend, memory); }
  void import(const SafetensorsFile& file) { import_parameters(program, *backend, memory, file); }

  TrainingRun run;
  Program program{program_options(run, kImages)};
  std::unique_ptr<Backend> backend = make_cpu_backend(1);
  RunMemory memory{*backend, program.plans()};
};

TrainingRun convnet(int ranks = 1, std::size_t bucket_bytes = 64 * 1024) {
  return {.model = "convnet",
          .ranks = ranks,
          .global_batch = 12,
          .compute = DType::kF32,
          .bucket_bytes = bucket_bytes};
}

NamedTensor& named(std::vector<NamedTensor>& tensors, std::string_view name) {
  return *std::ranges::find(tensors, name, &NamedTensor::name);
}

std::unique_ptr<SafetensorsFile> saved(const TemporaryDirectory& directory,
                                       const std::vector<NamedTensor>& tensors) {
  std::vector<FileTensor> in_file;
  for (const NamedTensor& tensor : tensors)
    in_file.push_back({.name = tensor.name, .type = tensor.type, .bytes = tensor.bytes});
  write_safetensors(directory / "weights.safetensors", {{"format", "pt"}}, in_file);
  return std::make_unique<SafetensorsFile>(directory / "weights.safetensors");
}

TEST(InitializeParameters, DependsOnSeedAndNameOnly) {
  Rank reference(convnet());
  reference.initialize();
  const std::vector<NamedTensor> expected = reference.exported();
  for (const int ranks : {1, 3})
    for (const std::size_t bucket_bytes : {1U, 4096U, 1U << 30}) {
      Rank rank(convnet(ranks, bucket_bytes));
      rank.initialize();
      EXPECT_EQ(largest_difference(rank.exported(), expected), 0);
    }
  Rank other([] {
    TrainingRun run = convnet();
    run.seed = 2;
    return run;
  }());
  other.initialize();
  EXPECT_GT(largest_difference(other.exported(), expected), 0);
}

TEST(InitializeParameters, FillsEachTensorWithinItsBoundAndWithNumbersOfItsOwn) {
  Rank rank(convnet());
  rank.initialize();
  std::vector<float> first_elements;
  for (const NamedTensor& tensor : rank.exported()) {
    const auto* data = reinterpret_cast<const float*>(tensor.bytes.data());
    const std::span elements(data, static_cast<std::size_t>(tensor.type.elements()));
    const auto parameter =
        std::ranges::find(rank.program.graph().parameters(), tensor.name, &Parameter::name);
    ASSERT_EQ(parameter->init.kind, Init::Kind::kUniform) << tensor.name;
    const auto bound = static_cast<float>(parameter->init.scale);
    EXPECT_LE(std::ranges::max(elements), bound) << tensor.name;
    EXPECT_GE(std::ranges::min(elements), -bound) << tensor.name;
    // The largest of n uniform numbers misses the bound by more than half with chance 2^-n.
    if (elements.size() >= 64) {
      EXPECT_GT(std::ranges::max(elements), bound / 2) << tensor.name;
      EXPECT_LT(std::ranges::min(elements), -bound / 2) << tensor.name;
    }
    first_elements.push_back(elements[0] / bound);
  }
  std::ranges::sort(first_elements);
  EXPECT_EQ(std::ranges::adjacent_find(first_elements), first_elements.end());
}

TEST(InitializeParameters, LeavesThePaddingOfTheSlabZero) {
  Rank rank(convnet(3));
  rank.initialize();
  const auto* slab = reinterpret_cast<const float*>(rank.memory.base(Region::kParameters));
  std::size_t at = 0;
  const auto expect_zero_until = [&](std::size_t end) {
    EXPECT_TRUE(std::all_of(slab + at, slab + end, [](float x) { return x == 0; }));
  };
  for (const SlabSegment& segment : rank.program.layout().segments) {
    expect_zero_until(segment.offset);
    at = segment.offset + segment.elements;
  }
  expect_zero_until(rank.program.layout().elements);
}

TEST(Parameters, SurviveAFileWhateverTheLayoutOfTheSlab) {
  const TemporaryDirectory directory;
  Rank from(convnet(1)), to(convnet(3, 1));
  from.initialize();
  to.import(*saved(directory, from.exported()));
  EXPECT_EQ(largest_difference(to.exported(), from.exported()), 0);
}

TEST(Parameters, FiltersAreInFilesAsChannelsFirstProgramsReadThem) {
  Rank rank(convnet());
  const auto& segments = rank.program.layout().segments;
  const auto segment = std::ranges::find(segments, "conv2.weight", &SlabSegment::name);
  auto* slab = reinterpret_cast<float*>(rank.memory.base(Region::kParameters)) + segment->offset;
  for (int i = 0; i < 64 * 3 * 3 * 32; ++i) slab[i] = static_cast<float>(i);
  std::vector<NamedTensor> tensors = rank.exported();
  const NamedTensor& conv2 = named(tensors, "conv2.weight");
  ASSERT_EQ(conv2.type.shape, (Shape{64, 32, 3, 3}));
  const auto* file = reinterpret_cast<const float*>(conv2.bytes.data());
  for (int k = 0; k < 64; ++k)
    for (int c = 0; c < 32; ++c)
      for (int tap = 0; tap < 9; ++tap)
        ASSERT_EQ(file[(k * 32 + c) * 9 + tap], static_cast<float>((k * 9 + tap) * 32 + c));
}

TEST(Parameters, ALinearLayerBehindAnImageHasItsColumnsInChannelsFirstOrderInFiles) {
  Rank rank(convnet());  // fc1 reads 3x3 images of 64 channels
  const auto& segments = rank.program.layout().segments;
  const auto segment = std::ranges::find(segments, "fc1.weight", &SlabSegment::name);
  auto* slab = reinterpret_cast<float*>(rank.memory.base(Region::kParameters)) + segment->offset;
  for (int i = 0; i < 128 * 576; ++i) slab[i] = static_cast<float>(i);
  std::vector<NamedTensor> tensors = rank.exported();
  const NamedTensor& fc1 = named(tensors, "fc1.weight");
  ASSERT_EQ(fc1.type.shape, (Shape{128, 576}));
  const auto* file = reinterpret_cast<const float*>(fc1.bytes.data());
  for (int unit = 0; unit < 128; ++unit)
    for (int c = 0; c < 64; ++c)
      for (int pixel = 0; pixel < 9; ++pixel)
        ASSERT_EQ(file[unit * 576 + c * 9 + pixel],
                  static_cast<float>(unit * 576 + pixel * 64 + c));
}

TEST(ImportParameters, NamesTheTensorThatDoesNotFit) {
  const TemporaryDirectory directory;
  Rank rank(convnet());
  rank.initialize();
  const std::vector<NamedTensor> whole = rank.exported();
  const auto expect_refused = [&](std::vector<NamedTensor> tensors, auto message) {
    const auto file = saved(directory, tensors);
    EXPECT_THAT([&] { rank.import(*file); }, ThrowsMessage<StorageError>(message));
  };

  std::vector<NamedTensor> missing = whole;
  std::erase_if(missing, [](const NamedTensor& t) { return t.name == "fc1.bias"; });
  expect_refused(missing, HasSubstr("fc1.bias"));

  std::vector<NamedTensor> extra = whole;
  extra.push_back(named(extra, "fc1.bias"));
  extra.back().name = "fc3.bias";
  expect_refused(extra, HasSubstr("fc3.bias"));

  std::vector<NamedTensor> misshaped = whole;
  named(misshaped, "fc1.bias").type.shape = Shape{2, 64};
  expect_refused(misshaped, AllOf(HasSubstr("fc1.bias"), HasSubstr("2"), HasSubstr("64")));

  std::vector<NamedTensor> retyped = whole;
  NamedTensor& tensor = named(retyped, "fc1.bias");
  tensor.type = {Shape{64}, DType::kF64};
  expect_refused(retyped, AllOf(HasSubstr("fc1.bias"), HasSubstr("F64")));
}

TEST(CheckReplicas, PassesOnEqualParameters) {
  comm::FakeCluster(3).run([](World& world, Communicator&) {
    Rank rank(convnet(3));
    rank.initialize();
    check_replicas(rank.program, *rank.backend, rank.memory, world);
  });
}

TEST(CheckReplicas, NamesTheTensorAndTheRanksOnAllRanks) {
  std::atomic<int> told = 0;
  comm::FakeCluster(4).run([&](World& world, Communicator&) {
    Rank rank(convnet(4));
    rank.initialize();
    const auto& segments = rank.program.layout().segments;
    const auto segment = std::ranges::find(segments, "conv2.bias", &SlabSegment::name);
    auto* slab = reinterpret_cast<float*>(rank.memory.base(Region::kParameters));
    if (world.rank() % 2 == 1) slab[segment->offset] += 1;
    try {
      check_replicas(rank.program, *rank.backend, rank.memory, world);
    } catch (const AgreedFailure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::kCommunication);
      EXPECT_EQ(failure.failure().rank, 1);
      EXPECT_THAT(failure.what(), AllOf(HasSubstr("'conv2.bias'"), HasSubstr("ranks 1, 3")));
      ++told;
    }
  });
  EXPECT_EQ(told, 4);
}

}  // namespace
}  // namespace ddp::test
