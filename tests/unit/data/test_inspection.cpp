#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>

#include "core/base/error.h"
#include "core/data/inspection.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/cifar_files.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

class InspectionTest : public testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) const { write_bytes(set_ / name, bytes); }
  void remove(const std::string& name) const { std::filesystem::remove(set_ / name); }

  std::vector<std::string> sentences(Severity severity, int classes = 0) const {
    std::vector<std::string> found;
    for (const Defect& defect : inspect_data(set_.string(), classes).defects)
      if (defect.severity == severity) found.push_back(defect.sentence);
    return found;
  }
  std::vector<std::string> errors(int classes = 0) const {
    return sentences(Severity::kError, classes);
  }
  std::vector<std::string> warnings(int classes = 0) const {
    return sentences(Severity::kWarning, classes);
  }

  TemporaryDirectory directory_;
  std::filesystem::path set_ = directory_ / "set";
};

class IdxInspection : public InspectionTest {
 protected:
  IdxInspection() {
    std::filesystem::create_directory(set_);
    write(kTrainImages, idx_images(5));
    write(kTrainLabels, idx_labels({0, 3, 1, 2, 3}));
    write(kTestLabels, idx_labels({2, 0, 1, 3}));
    Bytes test = idx_header({4, 4, 5});  // no image of training
    for (int i = 0; i < 4 * 20; ++i) test.push_back(static_cast<std::uint8_t>(3 * i));
    write(kTestImages, test);
  }
};

class CifarInspection : public InspectionTest {
 protected:
  CifarInspection() { write_cifar10(set_); }
};

TEST_F(IdxInspection, AGoodSetHasNoDefectsAndIsReadWhole) {
  const Inspection inspection = inspect_data(set_.string(), 0);
  EXPECT_THAT(inspection.defects, IsEmpty());
  EXPECT_EQ(inspection.set.classes, 4);
  EXPECT_EQ(inspection.train.count(), 5);
  EXPECT_EQ(inspection.train.image, (Shape{4, 5, 1}));
  EXPECT_EQ(inspection.train.labels, (Bytes{0, 3, 1, 2, 3}));
  EXPECT_EQ(inspection.validation.count(), 4);
}

TEST_F(IdxInspection, AllMissingFilesAreListed) {
  for (const char* name : {kTrainImages, kTrainLabels, kTestImages}) remove(name);
  EXPECT_THAT(errors(), ElementsAre(HasSubstr(std::string("holds no ") + kTrainImages),
                                    HasSubstr(std::string("holds no ") + kTrainLabels),
                                    HasSubstr(std::string("holds no ") + kTestImages)));
}

TEST_F(IdxInspection, EachFileWithItsOwnDefectIsListed) {
  write(kTrainImages, Bytes{7} + idx_images(5));
  Bytes cut = idx_labels({0, 3, 1, 2, 3});
  cut.pop_back();
  write(kTrainLabels, cut);
  write(kTestImages, idx_images(4) + Bytes{0});
  Bytes packed = gzip(idx_labels({2, 0, 1, 3}));
  packed[packed.size() - 6] ^= 1;  // the checksum
  write(kTestLabels, packed);
  EXPECT_THAT(errors(),
              ElementsAre(AllOf(HasSubstr(kTrainImages), HasSubstr("this is no idx file")),
                          AllOf(HasSubstr(kTrainLabels), HasSubstr("record 4: the file ends")),
                          AllOf(HasSubstr(kTestImages), HasSubstr("goes on at byte 96")),
                          AllOf(HasSubstr(kTestLabels), HasSubstr("gzip data is damaged"))));
}

TEST_F(IdxInspection, DefectsOfOneFileAreAllListed) {
  Bytes labels = idx_labels({0, 9, 1, 8, 3});
  labels.push_back(0);
  write(kTrainLabels, labels);
  write(kTrainImages, idx_images(6));
  EXPECT_THAT(errors(4), ElementsAre(HasSubstr("say 6 images"), HasSubstr("goes on at byte 13"),
                                     HasSubstr("record 1: label 9")));
}

TEST_F(IdxInspection, BadLabelsOfAFileAreOneDefectWithTheFirstRecords) {
  write(kTrainImages, idx_images(9));
  write(kTrainLabels, idx_labels({0, 7, 7, 7, 7, 7, 7, 7, 7}));
  EXPECT_THAT(errors(4), ElementsAre(AllOf(HasSubstr("record 1: label 7 at byte 9"),
                                           HasSubstr("records 2, 3, 4, 5, 6 and 2 more"))));
}

TEST_F(IdxInspection, ValidationLabelsBeyondThoseOfTrainingAreDefects) {
  write(kTestLabels, idx_labels({2, 0, 4, 3}));
  EXPECT_THAT(errors(), ElementsAre(AllOf(HasSubstr(kTestLabels), HasSubstr("record 2: label 4"))));
  EXPECT_THAT(errors(5), IsEmpty());
}

TEST_F(IdxInspection, LabelsCountedFromOneAreRecognised) {
  write(kTrainLabels, idx_labels({1, 4, 2, 3, 4}));
  EXPECT_THAT(errors(4), ElementsAre(AllOf(HasSubstr("record 1: label 4"),
                                           HasSubstr("they seem to be counted from 1"))));
  write(kTestLabels, idx_labels({1, 2, 3, 4}));
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("no training sample is of class 0"),
                                            HasSubstr("counted from 1?")),
                                      HasSubstr("no validation sample is of class 0")));
}

TEST_F(IdxInspection, ImagesOfTwoSizesAreADefect) {
  write(kTestImages, idx_images(4, 4, 6));
  EXPECT_THAT(errors(), ElementsAre(AllOf(HasSubstr("4x6"), HasSubstr("4x5"))));
}

TEST_F(IdxInspection, EmptyClassesAreAWarning) {
  EXPECT_THAT(errors(6), IsEmpty());
  EXPECT_THAT(warnings(6), ElementsAre(HasSubstr("no training sample is of class 4, 5"),
                                       HasSubstr("no validation sample is of class 4, 5")));
}

TEST_F(IdxInspection, ValidationImagesOfTrainingAreAWarning) {
  Bytes images = idx_header({4, 4, 5}) + Bytes(20, 1);
  const Bytes train = idx_images(5);
  images.insert(images.end(), train.begin() + 16 + 40, train.begin() + 16 + 80);  // images 2, 3
  write(kTestImages, images + Bytes(20, 2));
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("2 of the 4 validation images"),
                                            HasSubstr("(validation samples 1, 2)"))));
}

TEST_F(IdxInspection, ImagesThatAreAllTheSameAreAWarning) {
  write(kTrainImages, idx_header({5, 4, 5}) + Bytes(5 * 20, 7));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("all 5 training images are the same")));
}

TEST_F(IdxInspection, AnImageWithTwoLabelsIsAWarning) {
  Bytes images = idx_images(5);
  std::copy_n(images.begin() + 16, 20, images.begin() + 16 + 3 * 20);
  write(kTrainImages, images);
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("training samples 0 and 3 are the same image with "
                                                "the labels 0 and 2")));
  write(kTrainLabels, idx_labels({0, 3, 1, 0, 2}));
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(IdxInspection, ADirectoryOfTwoSetsIsRefused) {
  write_cifar10(set_ / "cifar-10-batches-bin");
  EXPECT_THAT(data_error([&] { inspect_data(set_.string(), 0); }),
              HasSubstr("holds both cifar-10 and MNIST idx files"));
}

TEST_F(IdxInspection, ADirectoryThatMayNotBeReadIsNamedAsSuch) {
  std::filesystem::permissions(set_, std::filesystem::perms::none);
  // Root may read everything, until it acts on files as somebody else.
  const int user = ::setfsuid(65534);
  const std::string sentence = data_error([&] { inspect_data(set_.string(), 0); });
  ::setfsuid(static_cast<uid_t>(user));
  std::filesystem::permissions(set_, std::filesystem::perms::owner_all);
  EXPECT_THAT(sentence, AllOf(HasSubstr("Permission denied; give yourself permission to read"),
                              Not(HasSubstr("fashion-mnist"))));
}

TEST_F(InspectionTest, ADirectoryWithoutImagesIsToldWhatIsRead) {
  std::filesystem::create_directory(set_);
  EXPECT_THAT(data_error([&] { inspect_data(set_.string(), 0); }),
              AllOf(HasSubstr("holds no images"), HasSubstr("CIFAR-10"), HasSubstr("CIFAR-100"),
                    HasSubstr(kTrainImages)));
}

TEST_F(InspectionTest, ThePythonVersionOfCifarIsRecognised) {
  std::filesystem::create_directory(set_);
  write("data_batch_1", {1});
  EXPECT_THAT(data_error([&] { inspect_data(set_.string(), 0); }),
              AllOf(HasSubstr("this is the Python version of cifar-10"),
                    HasSubstr("cifar-10-batches-bin")));
  remove("data_batch_1");
  std::filesystem::create_directory(set_ / "cifar-100-python");
  write("cifar-100-python/train", {1});
  EXPECT_THAT(data_error([&] { inspect_data(set_.string(), 0); }),
              HasSubstr("this is the Python version of cifar-100"));
}

TEST_F(IdxInspection, ASetThatIsNotThereIsAnError) {
  EXPECT_THAT(data_error([&] { inspect_data((set_ / "none").string(), 0); }),
              HasSubstr("No such file"));
}

TEST_F(CifarInspection, AGoodSetIsReadWholeAndOnlyItsSizeIsUnusual) {
  const Inspection inspection = inspect_data(set_.string(), 0);
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_THAT(warnings(),
              UnorderedElementsAre(HasSubstr("has 10 training samples, cifar-10 as published has "
                                             "50000"),
                                   HasSubstr("has 3 validation samples"),
                                   HasSubstr("no validation sample is of class 1, 2, 3, 5, 6 and "
                                             "2 more")));
  EXPECT_EQ(inspection.set.classes, 10);
  EXPECT_EQ(inspection.set.class_names[9], "name 9");
  EXPECT_EQ(inspection.train.count(), 10);
  EXPECT_EQ(inspection.validation.labels, (Bytes{9, 0, 4}));
}

TEST_F(CifarInspection, EveryDefectOfEveryFileIsListed) {
  remove("data_batch_1.bin");
  write("data_batch_2.bin", cifar10_records({11, 3, 12}, 2));
  Bytes cut = cifar10_records({99, 5}, 4);
  cut.pop_back();
  write("data_batch_3.bin", cut);
  write("data_batch_4.bin", {});
  Bytes packed = gzip(cifar10_records({8, 9}, 8));
  packed.erase(packed.end() - 5, packed.end());
  write("data_batch_5.bin", packed);
  remove("test_batch.bin");
  write("batches.meta.txt", {'a', '\n', 'b'});
  EXPECT_THAT(
      errors(),
      ElementsAre(HasSubstr("holds no data_batch_1.bin"),
                  AllOf(HasSubstr("data_batch_2.bin, record 0: label 11"), HasSubstr("records 2;")),
                  HasSubstr("data_batch_3.bin, record 1: the file ends at byte 6145"),
                  HasSubstr("data_batch_3.bin, record 0: label 99"),
                  HasSubstr("data_batch_4.bin: is empty"),
                  AllOf(HasSubstr("data_batch_5.bin: ends at byte"),
                        HasSubstr("in the middle of its gzip data")),
                  HasSubstr("holds no test_batch.bin")));
  EXPECT_THAT(warnings(), testing::Contains(HasSubstr("names 2 classes instead of 10")));
}

TEST_F(CifarInspection, FilesThatAreNotReadAreAWarning) {
  write("data_batch_6.bin", cifar10_records({1}, 50));
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_THAT(warnings(), testing::Contains(HasSubstr("data_batch_6.bin is not read")));
}

TEST_F(CifarInspection, BothLabelsOfCifar100AreChecked) {
  std::filesystem::remove_all(set_);
  write_cifar100(set_);
  Bytes bytes = cifar100_records({1, 2}, 0);
  bytes[0] = 20;
  bytes[1] = 100;
  write("test.bin", bytes);
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("test.bin, record 0: coarse label 20"),
                                    HasSubstr("test.bin, record 0: label 100")));
}

}  // namespace
}  // namespace ddp
