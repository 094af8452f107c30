#include "launcher/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/training/training.h"

namespace ddp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const DataFacts kFacts{
    .image = Shape{12, 10, 1}, .classes = 10, .mean = {0.1 + 0.2}, .stddev = {1.0 / 3}};

/// Saves freshly initialised weights of a small mlp.
void save(const std::filesystem::path& path) {
  const test::TrainingRun run;
  const Program program(test::program_options(
      run, {.image = kFacts.image, .classes = 10, .mean = kFacts.mean, .stddev = kFacts.stddev}));
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const RunMemory memory(*backend, program.plans());
  initialize_parameters(program, *backend, memory);
  save_weights(path, {.model = "mlp", .data = kFacts}, program, *backend, memory);
}

TEST(Weights, SayWhatIsNeededToUseThem) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "w.safetensors";
  save(path);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata("format"), "pt");
  EXPECT_EQ(file.metadata("input"), "1,12,10") << "channels, rows, columns";
  const WeightsInfo info = weights_info(file, path);
  EXPECT_EQ(info.model, "mlp");
  EXPECT_EQ(info.data.image, kFacts.image);
  EXPECT_EQ(info.data.classes, kFacts.classes);
  EXPECT_EQ(info.data.mean, kFacts.mean) << "to the last bit";
  EXPECT_EQ(info.data.stddev, kFacts.stddev);
}

TEST(Weights, AreTheSameBytesWheneverTheyAreSaved) {
  const TemporaryDirectory directory;
  save(directory / "a");
  save(directory / "b");
  EXPECT_EQ(read_file(directory / "a"), read_file(directory / "b"));
}

TEST(Weights, MetadataThatDescribesNoInputIsRefusedWithTheFile) {
  const SafetensorsMetadata good{
      {"model", "mlp"}, {"classes", "10"}, {"input", "1,12,10"}, {"mean", "0.5"}, {"std", "0.25"}};
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "w.safetensors";
  const auto info_of = [&](const SafetensorsMetadata& metadata) {
    write_safetensors(path, metadata, {});
    const SafetensorsFile file(path);
    return weights_info(file, path);
  };
  EXPECT_EQ(info_of(good).data.image, (Shape{12, 10, 1}));

  struct Bad {
    const char *key, *value;
  };
  for (const Bad bad :
       {Bad{"input", "1,12"}, Bad{"input", "1,12,10,3"}, Bad{"input", "1,0,10"},
        Bad{"input", "1,-12,10"}, Bad{"input", "1,12,x"}, Bad{"input", ""},
        Bad{"input", "1,12,99999999999999999999"}, Bad{"classes", "ten"}, Bad{"classes", "1"},
        Bad{"classes", "10,10"}, Bad{"classes", ""}, Bad{"mean", "0.5,0.5"}, Bad{"mean", "0.5;"},
        Bad{"mean", ""}, Bad{"mean", "nan"}, Bad{"std", "0.5,"}, Bad{"std", "0"}, Bad{"std", "-1"},
        Bad{"std", "inf"}}) {
    SafetensorsMetadata metadata = good;
    metadata[bad.key] = bad.value;
    EXPECT_THAT([&] { info_of(metadata); }, ThrowsMessage<StorageError>(HasSubstr(path.string())))
        << bad.key << " " << bad.value;
  }
  for (const auto& [key, value] : good) {
    SafetensorsMetadata metadata = good;
    metadata.erase(key);
    EXPECT_THAT([&] { info_of(metadata); }, ThrowsMessage<StorageError>(HasSubstr(key)));
  }
}

}  // namespace
}  // namespace ddp
