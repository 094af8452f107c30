#include "core/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/file.h"
#include "core/base/philox.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::literals;

template <class T, std::size_t n>
FileTensor make_tensor(std::string name, Shape shape, const std::array<T, n>& values) {
  return {std::move(name), {shape, dtype_of<T>}, std::as_bytes(std::span(values))};
}

constexpr std::array kBias{1.0F, -2.0F};
constexpr std::array kWeight{0.5F, 1.5F, 2.5F, 3.5F, 4.5F, 5.5F};
constexpr std::array<std::int64_t, 1> kSteps{7};
constexpr std::array<float, 0> kEmpty{};
constexpr std::array<std::uint8_t, 3> kBytes{1, 2, 3};

std::vector<FileTensor> example_tensors() {
  return {make_tensor("b.bytes", {3}, kBytes), make_tensor("fc.weight", {3, 2}, kWeight),
          make_tensor("fc.bias", {2}, kBias), make_tensor("empty", {0, 4}, kEmpty),
          make_tensor("steps", {}, kSteps)};
}
const SafetensorsMetadata kMetadata{{"format", "pt"}, {"classes", "10"}};

constexpr std::size_t kBufferBytes = 43;

/// What the example looks like in a file, from the format's description.
std::string example_bytes() {
  std::string header = R"({"__metadata__":{"classes":"10","format":"pt"},)"
                       R"("steps":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                       R"("empty":{"dtype":"F32","shape":[0,4],"data_offsets":[8,8]},)"
                       R"("fc.bias":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                       R"("fc.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[16,40]},)"
                       R"("b.bytes":{"dtype":"U8","shape":[3],"data_offsets":[40,43]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() % 256);
  file[1] = static_cast<char>(header.size() / 256);
  file += header;
  file += "\x07\0\0\0\0\0\0\0"sv;
  file += "\x00\x00\x80\x3f\x00\x00\x00\xc0"sv;
  file +=
      "\x00\x00\x00\x3f\x00\x00\xc0\x3f\x00\x00\x20\x40\x00\x00\x60\x40\x00\x00\x90\x40\x00\x00\xb0\x40"sv;
  file += "\x01\x02\x03"sv;
  return file;
}

/// The sentence with which `content` is refused.
std::string refusal(const std::string& content) {
  try {
    const SafetensorsFile file("weights", content);
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("weights: "));
    return error.what();
  }
  return "accepted";
}

TEST(Safetensors, WritesTheFormatByteForByte) {
  const TemporaryDirectory directory;
  write_safetensors(directory / "w", kMetadata, example_tensors());
  EXPECT_EQ(read_file(directory / "w"), example_bytes());
}

TEST(Safetensors, BytesDoNotDependOnTheOrderOfTensors) {
  const TemporaryDirectory directory;
  std::vector<FileTensor> tensors = example_tensors();
  std::ranges::reverse(tensors);
  write_safetensors(directory / "w", kMetadata, tensors);
  EXPECT_EQ(read_file(directory / "w"), example_bytes());
}

TEST(Safetensors, TensorsStartAtAMultipleOfEight) {
  const TemporaryDirectory directory;
  for (std::size_t length = 1; length < 20; ++length) {
    write_safetensors(directory / "w", {},
                      std::array{make_tensor(std::string(length, 'n'), {2}, kBias)});
    EXPECT_EQ((read_file(directory / "w").size() - sizeof kBias) % 8, 0U) << length;
  }
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  write_safetensors(directory / "w", kMetadata, example_tensors());
  const SafetensorsFile file(directory / "w");
  EXPECT_EQ(file.metadata(), kMetadata);
  EXPECT_EQ(file.metadata("classes"), "10");
  EXPECT_EQ(file.tensors().size(), example_tensors().size());
  for (const FileTensor& written : example_tensors()) {
    const FileTensor& read = file.tensor(written.name, written.type);
    EXPECT_TRUE(std::ranges::equal(read.bytes, written.bytes)) << written.name;
  }
}

TEST(Safetensors, FileWithoutTensorsOrMetadata) {
  const TemporaryDirectory directory;
  write_safetensors(directory / "w", {}, {});
  EXPECT_EQ(read_file(directory / "w"), "\x08\0\0\0\0\0\0\0{}      "sv);
  EXPECT_TRUE(SafetensorsFile(directory / "w").tensors().empty());
}

TEST(Safetensors, RefusesTensorsThatDoNotFitTheModel) {
  const TemporaryDirectory directory;
  write_safetensors(directory / "w", kMetadata, example_tensors());
  const SafetensorsFile file(directory / "w");
  EXPECT_EQ(file.find("fc2.bias"), nullptr);
  const auto sentence = [&](std::string_view name, const TensorType& type) -> std::string {
    try {
      file.tensor(name, type);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(sentence("fc2.bias", {{2}, DType::kF32}),
              AllOf(HasSubstr((directory / "w").string()), HasSubstr("no tensor 'fc2.bias'")));
  EXPECT_THAT(sentence("fc.bias", {{3}, DType::kF32}),
              HasSubstr("'fc.bias' is F32 2, the model needs F32 3"));
  EXPECT_THAT(sentence("fc.bias", {{2}, DType::kF64}),
              HasSubstr("'fc.bias' is F32 2, the model needs F64 2"));
  EXPECT_THROW(file.metadata("model"), StorageError);
}

TEST(Safetensors, WriterRefusesWhatTheFormatForbids) {
  const TemporaryDirectory directory;
  const FileTensor bias = make_tensor("bias", {2}, kBias);
  EXPECT_THROW(write_safetensors(directory / "w", {}, std::array{bias, bias}), InternalError);
  const FileTensor reserved = make_tensor("__metadata__", {2}, kBias);
  EXPECT_THROW(write_safetensors(directory / "w", kMetadata, std::array{reserved}), InternalError);
  EXPECT_THROW(write_safetensors(directory / "w", {}, std::array{reserved}), InternalError);
  const FileTensor short_one = make_tensor("bias", {3}, kBias);
  EXPECT_THROW(write_safetensors(directory / "w", {}, std::array{short_one}), InternalError);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Safetensors, FullDiskKeepsTheOldFile) {
  const TemporaryDirectory directory;
  write_safetensors(directory / "w", {}, std::array{make_tensor("bias", {2}, kBias)});
  const std::string before = read_file(directory / "w");
  {
    const FileSizeLimit full(100);
    EXPECT_THROW(write_safetensors(directory / "w", kMetadata, example_tensors()), StorageError);
  }
  EXPECT_EQ(read_file(directory / "w"), before);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes = example_bytes();
  EXPECT_EQ(refusal(bytes), "accepted");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(refusal(bytes.substr(0, size)), "accepted") << size;
}

TEST(Safetensors, RefusesTrailingBytes) {
  const std::string bytes = example_bytes();
  EXPECT_THAT(refusal(bytes + "x"),
              HasSubstr(fmt::format("1 bytes at offset {} belong to no tensor", bytes.size())));
}

TEST(Safetensors, RefusesAnImpossibleHeaderLength) {
  std::string bytes = example_bytes();
  bytes[7] = '\x7f';
  EXPECT_THAT(refusal(bytes), HasSubstr("header length at offset 0"));
  bytes[7] = '\xff';
  EXPECT_THAT(refusal(bytes), HasSubstr("header length at offset 0"));
  EXPECT_THAT(refusal("\x10\0\0\0\0\0\0\0{}"s), HasSubstr("the header ends at offset 24"));
}

TEST(Safetensors, ErrorsNameTheFile) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "w").string();
  EXPECT_THROW(SafetensorsFile{std::filesystem::path(path)}, StorageError);
  write_file_atomically(path, "damaged");
  try {
    const SafetensorsFile file{std::filesystem::path(path)};
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

/// A changed file is refused, or only what tensors and metadata hold has changed: whatever is
/// accepted tiles the buffer.
void expect_refused_or_consistent(const std::string& content, bool& refused) {
  refused = false;
  try {
    const SafetensorsFile file("weights", content);
    std::size_t end = 0;
    for (const FileTensor& tensor : file.tensors()) {
      EXPECT_EQ(tensor.bytes.size(), tensor.type.bytes());
      end += tensor.bytes.size();
    }
    EXPECT_EQ(end, kBufferBytes);
  } catch (const StorageError&) {
    refused = true;
  }
}

TEST(Safetensors, SurvivesEveryFlippedBit) {
  const std::string bytes = example_bytes();
  std::size_t refusals = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const std::size_t at = bit / 8;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (bit % 8)));
    bool refused = false;
    expect_refused_or_consistent(changed, refused);
    EXPECT_FALSE(refused && at >= bytes.size() - kBufferBytes) << "tensor bytes have no checksum";
    refusals += refused ? 1U : 0U;
  }
  // Names, metadata values and padding may change; the structure, which is most of the header, may
  // not.
  EXPECT_GT(refusals, 8 * (bytes.size() - kBufferBytes) / 2);
}

TEST(Safetensors, SurvivesSeveralChangedBytes) {
  const std::string bytes = example_bytes();
  const PhiloxKey key = philox_key(1, RandomStream::kSynthetic);
  const std::string_view alphabet = "0123456789{}[]\",:-eE. \\u\xff"sv;
  std::size_t refusals = 0;
  for (std::uint32_t trial = 0; trial < 4'000; ++trial) {
    std::string changed = bytes;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const PhiloxBlock random = philox(key, trial, i, 0);
      const auto header_size = static_cast<std::uint32_t>(bytes.size() - kBufferBytes);
      changed[uniform_below(random[0], header_size)] =
          alphabet[uniform_below(random[1], static_cast<std::uint32_t>(alphabet.size()))];
    }
    bool refused = false;
    expect_refused_or_consistent(changed, refused);
    refusals += refused ? 1U : 0U;
  }
  EXPECT_GT(refusals, 2'000U);
}

}  // namespace
}  // namespace ddp
