#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>

#include "core/base/error.h"
#include "core/data/dataset.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/idx_files.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

class IdxDataset : public testing::Test {
 protected:
  IdxDataset() {
    std::filesystem::create_directory(set_);
    write(kTrainImages, idx_images(5));
    write(kTrainLabels, idx_labels({0, 3, 1, 2, 3}));
    write(kTestImages, idx_images(2));
    write(kTestLabels, idx_labels({2, 0}));
  }
  ~IdxDataset() override { ::unsetenv("DDPTRAIN_DATA"); }

  void write(const std::string& name, const Bytes& bytes) const { write_bytes(set_ / name, bytes); }
  void remove(const std::string& name) const { std::filesystem::remove(set_ / name); }

  std::unique_ptr<Dataset> open(Split split, DatasetOptions options = {}) const {
    options.data = set_.string();
    return open_dataset(options, split);
  }
  std::string error(Split split, const DatasetOptions& options = {}) const {
    return data_error([&] { open(split, options); });
  }

  TemporaryDirectory directory_;
  std::filesystem::path set_ = directory_ / "shapes";
};

Bytes image(const Dataset& dataset, std::int64_t index) {
  Bytes pixels(static_cast<std::size_t>(dataset.info().image.elements()));
  dataset.read(index, pixels);
  return pixels;
}

Bytes image(const Bytes& file, std::ptrdiff_t index) {
  return {file.begin() + 16 + 20 * index, file.begin() + 16 + 20 * (index + 1)};
}

TEST_F(IdxDataset, ReadsEachSplitByIndex) {
  const auto train = open(Split::kTrain);
  EXPECT_EQ(train->info().name, "shapes");
  EXPECT_EQ(train->info().source, set_.string());
  EXPECT_EQ(train->info().image, (Shape{4, 5, 1}));
  EXPECT_EQ(train->info().classes, 4);
  ASSERT_EQ(train->info().size, 5);
  Bytes pixels(20);
  EXPECT_EQ(train->read(4, pixels), 3);
  EXPECT_EQ(pixels, image(idx_images(5), 4));
  EXPECT_EQ(train->read(2, pixels), 1);
  EXPECT_EQ(pixels, image(idx_images(5), 2));

  const auto validation = open(Split::kValidation);
  ASSERT_EQ(validation->info().size, 2);
  EXPECT_EQ(validation->read(0, pixels), 2);
  EXPECT_EQ(pixels, image(idx_images(2), 0));
}

TEST_F(IdxDataset, ReadingOutsideOfItIsADefect) {
  const auto train = open(Split::kTrain, {.limit = 3});
  Bytes pixels(20), few(19);
  EXPECT_THROW(train->read(3, pixels), InternalError);
  EXPECT_THROW(train->read(-1, pixels), InternalError);
  EXPECT_THROW(train->read(0, few), InternalError);
}

TEST_F(IdxDataset, LimitTakesTheFirstSamplesAndAtMostAll) {
  EXPECT_EQ(open(Split::kTrain, {.limit = 2})->info().size, 2);
  EXPECT_EQ(open(Split::kTrain, {.limit = 500})->info().size, 5);
  EXPECT_EQ(image(*open(Split::kTrain, {.limit = 2}), 1), image(idx_images(5), 1));
}

TEST_F(IdxDataset, BothSplitsAreNormalisedByAllTrainingImages) {
  const Bytes file = idx_images(5);
  double sum = 0, squares = 0;
  for (auto pixel = file.begin() + 16; pixel != file.end(); ++pixel) sum += *pixel / 255.0;
  const double mean = sum / 100;
  for (auto pixel = file.begin() + 16; pixel != file.end(); ++pixel) {
    squares += std::pow(*pixel / 255.0 - mean, 2);
  }
  const double stddev = std::sqrt(squares / 100);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    const auto dataset = open(split, {.limit = 1});
    ASSERT_EQ(dataset->info().mean.size(), 1U);
    ASSERT_EQ(dataset->info().stddev.size(), 1U);
    // The sums are exact, their difference loses a few digits at most.
    EXPECT_NEAR(dataset->info().mean[0], mean, 1e-14);
    EXPECT_NEAR(dataset->info().stddev[0], stddev, 1e-13);
    EXPECT_EQ(dataset->info().normalisation_source, "measured over 5 training images");
  }
}

TEST_F(IdxDataset, ImagesOfOneGreyValueAreNotScaled) {
  write(kTrainImages, idx_header({5, 1, 1}) + Bytes(5, 51));
  const auto dataset = open(Split::kTrain);
  EXPECT_DOUBLE_EQ(dataset->info().mean[0], 0.2);
  EXPECT_EQ(dataset->info().stddev[0], 1);
}

TEST_F(IdxDataset, KnownSetsHaveTheirKnownNormalisation) {
  const auto mean_in = [&](const std::string& name) {
    std::filesystem::copy(set_, directory_ / name);
    return open_dataset({.data = (directory_ / name).string()}, Split::kTrain)->info().mean[0];
  };
  const double computed = open(Split::kTrain)->info().mean[0];
  EXPECT_EQ(mean_in("MNIST"), 0.1307);
  EXPECT_EQ(mean_in("my-fashion-mnist"), computed);

  ::setenv("DDPTRAIN_DATA", directory_.path().c_str(), 1);
  mean_in("fashion-mnist");
  const auto dataset = open_dataset({}, Split::kTrain);
  EXPECT_EQ(dataset->info().name, "fashion-mnist");
  EXPECT_EQ(dataset->info().classes, 10);
  EXPECT_EQ(dataset->info().mean, std::vector{0.2860});
  EXPECT_EQ(dataset->info().stddev, std::vector{0.3530});
  EXPECT_EQ(dataset->info().normalisation_source, "preset of fashion-mnist");
  ASSERT_EQ(dataset->info().class_names.size(), 10U);
  EXPECT_EQ(dataset->info().class_names[9], "Ankle boot");
}

TEST_F(IdxDataset, ClassNamesAreThereForEachClassOrNotAtAll) {
  std::filesystem::copy(set_, directory_ / "mnist");
  const auto names = [&](int classes) {
    const std::string data = (directory_ / "mnist").string();
    return open_dataset({.data = data, .classes = classes}, Split::kTrain)->info().class_names;
  };
  EXPECT_EQ(names(10).back(), "9");
  EXPECT_EQ(names(0).size(), 0U) << "its labels say that there are 4 classes";
  EXPECT_EQ(open(Split::kTrain)->info().class_names.size(), 0U);
}

TEST_F(IdxDataset, NameIsTheLastComponentHoweverThePathIsWritten) {
  for (const std::string path : {"/", "/.", "/../shapes", "/../shapes/"}) {
    EXPECT_EQ(open_dataset({.data = set_.string() + path}, Split::kTrain)->info().name, "shapes");
  }
}

TEST_F(IdxDataset, AValidationSplitAloneIsEnoughWhenTheRestIsGiven) {
  remove(kTrainImages);
  EXPECT_THAT(error(Split::kValidation), HasSubstr("holds no train-images-idx3-ubyte"));
  remove(kTrainLabels);
  EXPECT_THAT(error(Split::kValidation), HasSubstr("holds no train-labels-idx1-ubyte"));
  const auto dataset = open(Split::kValidation, {.classes = 7, .mean = {0.25}, .stddev = {0.5}});
  EXPECT_EQ(dataset->info().classes, 7);
  EXPECT_EQ(dataset->info().mean, std::vector{0.25});
  EXPECT_EQ(dataset->info().stddev, std::vector{0.5});
}

TEST_F(IdxDataset, AcceptsBothSpellingsPlainAndPacked) {
  for (const std::string name :
       {"train-images.idx3-ubyte", "train-images.idx3-ubyte.gz", "train-images-idx3-ubyte.gz"}) {
    remove(kTrainImages);
    EXPECT_THAT(error(Split::kTrain), HasSubstr("holds no train-images-idx3-ubyte"));
    write(name, name.ends_with(".gz") ? gzip(idx_images(5)) : idx_images(5));
    EXPECT_EQ(image(*open(Split::kTrain), 3), image(idx_images(5), 3)) << name;
    remove(name);
  }
}

TEST_F(IdxDataset, APlainFileWinsOverAPackedOne) {
  write(std::string(kTrainImages) + ".gz", gzip(idx_header({5, 1, 1}) + Bytes(5)));
  EXPECT_EQ(open(Split::kTrain)->info().image, (Shape{4, 5, 1}));
}

TEST_F(IdxDataset, EveryFileMustBeThere) {
  for (const char* name : {kTrainImages, kTrainLabels}) {
    const std::filesystem::path aside = directory_ / "aside";
    std::filesystem::rename(set_ / name, aside);
    EXPECT_THAT(error(Split::kTrain),
                AllOf(HasSubstr(set_.string()), HasSubstr(std::string("holds no ") + name)));
    std::filesystem::rename(aside, set_ / name);
  }
  for (const char* name : {kTestImages, kTestLabels}) {
    const std::filesystem::path aside = directory_ / "aside";
    std::filesystem::rename(set_ / name, aside);
    EXPECT_THAT(error(Split::kValidation), HasSubstr(std::string("holds no ") + name));
    std::filesystem::rename(aside, set_ / name);
  }
}

TEST_F(IdxDataset, EveryFileIsNamedWhenItIsNoFile) {
  for (const auto& [name, split] :
       {std::pair{kTrainImages, Split::kTrain}, std::pair{kTrainLabels, Split::kTrain},
        std::pair{kTestImages, Split::kValidation}, std::pair{kTestLabels, Split::kValidation}}) {
    const std::filesystem::path aside = directory_ / "aside";
    std::filesystem::rename(set_ / name, aside);
    std::filesystem::create_directory(set_ / name);
    EXPECT_THAT(error(split),
                AllOf(HasSubstr((set_ / name).string()), HasSubstr("is not a regular file")));
    std::filesystem::remove(set_ / name);
    std::filesystem::create_symlink("nowhere", set_ / name);
    EXPECT_THAT(error(split),
                AllOf(HasSubstr((set_ / name).string()), HasSubstr("cannot be opened")));
    std::filesystem::remove(set_ / name);
    std::filesystem::rename(aside, set_ / name);
  }
}

TEST_F(IdxDataset, ImagesAndLabelsMustBeAsMany) {
  write(kTrainLabels, idx_labels({0, 1, 2}));
  EXPECT_THAT(error(Split::kTrain), AllOf(HasSubstr(kTrainImages), HasSubstr("say 5 images"),
                                          HasSubstr(kTrainLabels), HasSubstr("3 labels")));
}

TEST_F(IdxDataset, SwappedFilesAreRecognised) {
  write(kTrainLabels, idx_images(5));
  write(kTrainImages, idx_labels({0, 3, 1, 2, 3}));
  EXPECT_THAT(error(Split::kTrain), HasSubstr("are the two files swapped?"));
}

TEST_F(IdxDataset, BothSplitsMustHaveImagesOfOneSize) {
  write(kTestImages, idx_images(2, 4, 6));
  EXPECT_THAT(error(Split::kValidation), AllOf(HasSubstr("4x6"), HasSubstr("4x5")));
}

TEST_F(IdxDataset, ClassesComeFromTheTrainingLabels) {
  write(kTrainLabels, idx_labels({0, 255, 1, 2, 3}));
  EXPECT_EQ(open(Split::kTrain, {.limit = 1})->info().classes, 256);
  EXPECT_EQ(open(Split::kValidation)->info().classes, 256);
  write(kTrainLabels, idx_labels({0, 0, 0, 0, 0}));
  EXPECT_EQ(open(Split::kTrain)->info().classes, 2);
}

TEST_F(IdxDataset, ALabelOutOfRangeIsNamedByRecordAndByte) {
  // Beyond the limit too: a file is checked whole.
  EXPECT_THAT(error(Split::kTrain, {.limit = 1, .classes = 3}),
              AllOf(HasSubstr(std::string(kTrainLabels) + ", record 1: "),
                    HasSubstr("label 3 at byte 9 is outside 0..2")));
  write(kTestLabels, idx_labels({1, 4}));
  EXPECT_THAT(error(Split::kValidation), AllOf(HasSubstr(std::string(kTestLabels) + ", record 1: "),
                                               HasSubstr("label 4 at byte 9 is outside 0..3")));
  EXPECT_EQ(open(Split::kValidation, {.classes = 5})->info().classes, 5);
  write(kTestLabels, gzip(idx_labels({1, 4})));
  EXPECT_THAT(error(Split::kValidation), HasSubstr("label 4 at unpacked byte 9"));
}

TEST_F(IdxDataset, LabelsCountedFromOneAreRecognised) {
  write(kTrainLabels, idx_labels({1, 4, 2, 3, 3}));
  EXPECT_THAT(error(Split::kTrain, {.classes = 4}),
              AllOf(HasSubstr("record 1: label 4"),
                    HasSubstr("run from 1 to 4: they seem to be counted from 1")));
  write(kTrainLabels, idx_labels({0, 4, 2, 3, 3}));
  EXPECT_THAT(error(Split::kTrain, {.classes = 4}),
              AllOf(HasSubstr("record 1: label 4"), HasSubstr("check the file, or --classes")));
}

TEST_F(IdxDataset, FashionMnistHasTenClasses) {
  ::setenv("DDPTRAIN_DATA", directory_.path().c_str(), 1);
  write(kTrainLabels, idx_labels({0, 3, 9, 10, 3}));
  std::filesystem::rename(set_, directory_ / "fashion-mnist");
  EXPECT_THAT(data_error([] { open_dataset({}, Split::kTrain); }),
              AllOf(HasSubstr("record 3: "), HasSubstr("label 10 at byte 11 is outside 0..9")));
}

TEST_F(IdxDataset, AMissingFashionMnistSaysHowToGetItAndWhatElseThereIs) {
  ::setenv("DDPTRAIN_DATA", directory_.path().c_str(), 1);
  EXPECT_THAT(data_error([] { open_dataset({}, Split::kTrain); }),
              AllOf(HasSubstr((directory_ / "fashion-mnist").string()), HasSubstr("DDPTRAIN_DATA"),
                    HasSubstr("apt-get install dataset-fashion-mnist"), HasSubstr("--data DIR"),
                    HasSubstr("--data synthetic")));
}

TEST_F(IdxDataset, ADataArgumentThatIsNoDirectorySaysWhatIsLookedFor) {
  const auto error_of = [](const std::filesystem::path& path) {
    return data_error([&] { open_dataset({.data = path.string()}, Split::kTrain); });
  };
  const auto looked_for = AllOf(HasSubstr(kTrainImages), HasSubstr(kTestLabels), HasSubstr(".gz"));
  EXPECT_THAT(error_of(directory_ / "none"), AllOf(HasSubstr("No such file"), looked_for));
  EXPECT_THAT(error_of(set_ / kTrainImages), AllOf(HasSubstr("is not a directory"), looked_for));
  std::filesystem::create_directory(directory_ / "empty");
  EXPECT_THAT(error_of(directory_ / "empty"), AllOf(HasSubstr("holds no images"), looked_for));
}

}  // namespace
}  // namespace ddp
