#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/dataset.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/cifar_files.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::size_t kRecord10 = 1 + kCifarImage;
constexpr std::size_t kRecord100 = 2 + kCifarImage;

class CifarDataset : public testing::Test {
 protected:
  CifarDataset() { write_cifar10(set_); }
  ~CifarDataset() override { ::unsetenv("DDPTRAIN_DATA"); }

  std::unique_ptr<Dataset> open(Split split, DatasetOptions options = {}) const {
    options.data = set_.string();
    return open_dataset(options, split);
  }
  std::string error(Split split, const DatasetOptions& options = {}) const {
    return data_error([&] { open(split, options); });
  }
  void write(const std::string& name, const Bytes& bytes) const { write_bytes(set_ / name, bytes); }

  TemporaryDirectory directory_;
  std::filesystem::path set_ = directory_ / "set";
};

void expect_sample(const Dataset& dataset, std::int64_t index, int label, int number) {
  Bytes pixels(kCifarImage);
  EXPECT_EQ(dataset.read(index, pixels), label);
  EXPECT_EQ(pixels, cifar_channels_last(number));
}

TEST_F(CifarDataset, ReadsTheFilesInOrderAndTurnsPlanesIntoPixels) {
  const auto train = open(Split::kTrain);
  EXPECT_EQ(train->info().name, "cifar-10");
  EXPECT_EQ(train->info().image, (Shape{32, 32, 3}));
  EXPECT_EQ(train->info().classes, 10);
  ASSERT_EQ(train->info().size, 10);
  for (int i = 0; i < 10; ++i) expect_sample(*train, i, i, i);
  const auto validation = open(Split::kValidation);
  ASSERT_EQ(validation->info().size, 3);
  expect_sample(*validation, 0, 9, 100);
  expect_sample(*validation, 2, 4, 102);
}

TEST_F(CifarDataset, OfCifar100TheFineLabelCounts) {
  write_cifar100(directory_ / "hundred");
  const std::string data = (directory_ / "hundred").string();
  const auto train = open_dataset({.data = data}, Split::kTrain);
  EXPECT_EQ(train->info().name, "cifar-100");
  EXPECT_EQ(train->info().classes, 100);
  ASSERT_EQ(train->info().size, 100);
  for (const int i : {0, 50, 99}) expect_sample(*train, i, i, i);
  expect_sample(*open_dataset({.data = data}, Split::kValidation), 1, 7, 201);
}

TEST_F(CifarDataset, LimitTakesTheFirstSamplesOverAllFiles) {
  const auto dataset = open(Split::kTrain, {.limit = 3});
  ASSERT_EQ(dataset->info().size, 3);
  expect_sample(*dataset, 2, 2, 2);
  EXPECT_EQ(open(Split::kTrain, {.limit = 500})->info().size, 10);
}

TEST_F(CifarDataset, IsNormalisedByItsPresetUnlessOneIsGiven) {
  const DatasetInfo info = open(Split::kValidation)->info();
  EXPECT_EQ(info.mean, (std::vector{0.4914, 0.4822, 0.4465}));
  EXPECT_EQ(info.stddev, (std::vector{0.2470, 0.2435, 0.2616}));
  EXPECT_EQ(info.normalisation_source, "preset of cifar-10");
  const DatasetOptions given{.mean = {0.1, 0.2, 0.3}, .stddev = {0.5, 0.6, 0.7}};
  EXPECT_EQ(open(Split::kTrain, given)->info().mean, given.mean);
  EXPECT_EQ(open(Split::kTrain, given)->info().stddev, given.stddev);
  write_cifar100(directory_ / "hundred");
  const DatasetInfo hundred =
      open_dataset({.data = (directory_ / "hundred").string()}, Split::kTrain)->info();
  EXPECT_EQ(hundred.mean, (std::vector{0.5071, 0.4865, 0.4409}));
  EXPECT_EQ(hundred.normalisation_source, "preset of cifar-100");
}

TEST_F(CifarDataset, ClassNamesComeFromTheFileOfNames) {
  EXPECT_THAT(open(Split::kTrain)->info().class_names, SizeIs(10));
  EXPECT_EQ(open(Split::kTrain)->info().class_names[3], "name 3");
  EXPECT_THAT(open(Split::kTrain, {.classes = 12})->info().class_names, SizeIs(0))
      << "names are of all classes or of none";
  std::filesystem::remove(set_ / "batches.meta.txt");
  EXPECT_THAT(open(Split::kTrain)->info().class_names, SizeIs(0));
}

TEST_F(CifarDataset, IsFoundInTheFolderThatItsArchiveUnpacksTo) {
  write_cifar10(directory_ / "a" / "cifar-10-batches-bin");
  write_cifar100(directory_ / "b" / "cifar-100-binary");
  const auto name = [&](const char* folder) {
    return open_dataset({.data = (directory_ / folder).string()}, Split::kTrain)->info().name;
  };
  EXPECT_EQ(name("a"), "cifar-10");
  EXPECT_EQ(name("b"), "cifar-100");
  write_cifar100(directory_ / "a" / "cifar-100-binary");
  EXPECT_THAT(data_error([&] { name("a"); }), HasSubstr("holds both CIFAR-10 and CIFAR-100"));
}

TEST_F(CifarDataset, ByNameItIsLookedForAmongTheDataSets) {
  ::setenv("DDPTRAIN_DATA", directory_.path().c_str(), 1);
  EXPECT_THAT(data_error([] { open_dataset({.data = "cifar-10"}, Split::kTrain); }),
              AllOf(HasSubstr((directory_ / "cifar-10").string()), HasSubstr("DDPTRAIN_DATA"),
                    HasSubstr("binary version"), HasSubstr("cifar-10-batches-bin"),
                    HasSubstr("--data DIR"), HasSubstr("--data synthetic")));
  for (const char* place : {"cifar-10", "cifar-10-batches-bin"}) {
    std::filesystem::rename(set_, directory_ / place);
    const DatasetInfo info = open_dataset({.data = "cifar-10"}, Split::kTrain)->info();
    EXPECT_EQ(info.source, (directory_ / place).string());
    EXPECT_EQ(info.size, 10);
    std::filesystem::rename(directory_ / place, set_);
  }
  std::filesystem::rename(set_, directory_ / "cifar-100");
  EXPECT_THAT(data_error([] { open_dataset({.data = "cifar-100"}, Split::kTrain); }),
              HasSubstr("the data set cifar-100 is not there"))
      << "files of the other set do not count";
}

TEST_F(CifarDataset, AllMissingFilesAreNamedAtOnce) {
  std::filesystem::remove(set_ / "data_batch_2.bin");
  std::filesystem::remove(set_ / "data_batch_5.bin");
  EXPECT_THAT(
      error(Split::kTrain),
      AllOf(HasSubstr(set_.string()), HasSubstr("holds no data_batch_2.bin, data_batch_5.bin")));
  EXPECT_EQ(open(Split::kValidation)->info().size, 3) << "which needs no training file";
  std::filesystem::remove(set_ / "test_batch.bin");
  EXPECT_THAT(error(Split::kValidation), HasSubstr("holds no test_batch.bin"));
}

TEST_F(CifarDataset, ATruncatedFileIsNamedWithRecordAndByte) {
  Bytes bytes = cifar10_records({4, 5}, 4);
  for (const std::size_t size : {std::size_t{1}, kRecord10 - 1, kRecord10 + 1, 2 * kRecord10 - 1}) {
    write("data_batch_3.bin", {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_THAT(error(Split::kTrain, {.limit = 1}),
                AllOf(HasSubstr(fmt::format("data_batch_3.bin, record {}: ", size / kRecord10)),
                      HasSubstr(fmt::format("the file ends at byte {},", size))));
  }
  write("data_batch_3.bin", gzip({bytes.begin(), bytes.begin() + 7}));
  EXPECT_THAT(error(Split::kTrain), HasSubstr("ends at unpacked byte 7,"));
}

TEST_F(CifarDataset, AnEmptyFileIsNamed) {
  write("data_batch_1.bin", {});
  EXPECT_THAT(error(Split::kTrain), HasSubstr("data_batch_1.bin: is empty"));
}

TEST_F(CifarDataset, WhatIsNoFileIsNamed) {
  std::filesystem::remove(set_ / "test_batch.bin");
  std::filesystem::create_symlink("nowhere", set_ / "test_batch.bin");
  EXPECT_THAT(error(Split::kValidation),
              AllOf(HasSubstr("test_batch.bin"), HasSubstr("cannot be opened")));
  std::filesystem::remove(set_ / "test_batch.bin");
  std::filesystem::create_directory(set_ / "test_batch.bin");
  EXPECT_THAT(error(Split::kValidation), HasSubstr("is not a regular file"));
}

TEST_F(CifarDataset, ALabelOutOfRangeIsNamedByRecordAndByte) {
  write("data_batch_4.bin", cifar10_records({6, 10, 255}, 6));
  EXPECT_THAT(error(Split::kTrain),
              AllOf(HasSubstr("data_batch_4.bin, record 1: "),
                    HasSubstr(fmt::format("label 10 at byte {} is outside 0..9", kRecord10)),
                    HasSubstr("records 2; check the file")));
}

TEST_F(CifarDataset, BothLabelsOfCifar100AreChecked) {
  const std::filesystem::path hundred = directory_ / "hundred";
  write_cifar100(hundred);
  const auto error_with = [&](std::size_t byte, std::uint8_t value) {
    Bytes bytes = cifar100_records({1, 2, 3}, 0);
    bytes[byte] = value;
    write_bytes(hundred / "train.bin", bytes);
    return data_error([&] { open_dataset({.data = hundred.string()}, Split::kTrain); });
  };
  EXPECT_THAT(
      error_with(kRecord100, 20),
      HasSubstr(fmt::format("record 1: coarse label 20 at byte {} is outside 0..19", kRecord100)));
  EXPECT_THAT(error_with(2 * kRecord100 + 1, 100),
              HasSubstr(fmt::format("record 2: label 100 at byte {} is outside 0..99",
                                    2 * kRecord100 + 1)));
}

TEST_F(CifarDataset, LabelsCountedFromOneAreRecognised) {
  for (int file = 0; file < 5; ++file)
    write(fmt::format("data_batch_{}.bin", file + 1), cifar10_records({1, 10}, 0));
  EXPECT_THAT(error(Split::kTrain), HasSubstr("they seem to be counted from 1"));
  EXPECT_EQ(open(Split::kTrain, {.classes = 11})->info().classes, 11);
}

TEST_F(CifarDataset, DamagedFilesAreReadOrRefusedButNeverOverrun) {
  const Bytes whole = cifar10_records({0, 1, 2}, 0);
  const Bytes packed = gzip(whole);
  const PhiloxKey key = philox_key(1, RandomStream::kSynthetic, 0);
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const PhiloxBlock random = philox(key, 0, trial, 0);
    Bytes bytes = trial % 2 == 0 ? whole : packed;
    bytes[random[0] % bytes.size()] = static_cast<std::uint8_t>(random[1]);
    if (trial % 3 == 0) bytes.resize(random[2] % bytes.size());
    write("test_batch.bin", bytes);
    try {
      const auto dataset = open(Split::kValidation);
      Bytes pixels(kCifarImage);
      for (std::int64_t i = 0; i < dataset->info().size; ++i)
        EXPECT_LT(dataset->read(i, pixels), 10);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace ddp
