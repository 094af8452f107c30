#include "core/telemetry/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/telemetry/csv.h"
#include "core/telemetry/summary.h"

namespace ddp {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Of 3 classes; class 2 has no samples and one without a prediction is of class 1.
ConfusionMatrix example() {
  ConfusionMatrix confusion(3);
  for (int i = 0; i < 6; ++i) confusion.add(0, 0);
  for (int i = 0; i < 2; ++i) confusion.add(0, 1);
  confusion.add(1, 1);
  confusion.add(1, 2);
  confusion.add(1, 0);
  confusion.add(1, -1);
  return confusion;
}

TEST(ConfusionMatrix, CountsEachSampleOnceInItsCell) {
  const ConfusionMatrix confusion = example();
  EXPECT_EQ(confusion.at(0, 0), 6);
  EXPECT_EQ(confusion.at(0, 1), 2);
  EXPECT_EQ(confusion.at(1, 0), 1);
  EXPECT_EQ(confusion.at(2, 2), 0);
  EXPECT_EQ(confusion.no_prediction(0), 0);
  EXPECT_EQ(confusion.no_prediction(1), 1);
}

TEST(ClassScores, FollowFromTheMatrix) {
  const std::vector<ClassScore> scores = class_scores(example());
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].samples, 8);
  EXPECT_EQ(scores[0].correct, 6);
  EXPECT_EQ(scores[0].recall, 6.0 / 8);
  EXPECT_EQ(scores[0].precision, 6.0 / 7);
  EXPECT_EQ(scores[0].confused_with, 1);
  EXPECT_EQ(scores[0].confused, 2);
  EXPECT_EQ(scores[1].samples, 4) << "one without a prediction is a sample too";
  EXPECT_EQ(scores[1].recall, 1.0 / 4);
  EXPECT_EQ(scores[1].confused_with, 0) << "the lower of two classes that are as common";
}

TEST(ClassScores, OfAClassWithoutSamplesAreUnknown) {
  const ClassScore score = class_scores(example())[2];
  EXPECT_EQ(score.samples, 0);
  EXPECT_FALSE(score.recall);
  EXPECT_EQ(score.precision, 0);
  EXPECT_FALSE(score.confused_with);
  EXPECT_FALSE(class_scores(ConfusionMatrix(2))[0].precision);
}

TEST(ClassTable, HasALineForEachClassByNameOrNumber) {
  const std::vector<ClassScore> scores = class_scores(example());
  EXPECT_EQ(class_table(scores, {"cat", "dog", "eel"}),
            "class  samples  correct   recall  precision  most confused with\n"
            "cat          8        6  75.00 %    85.71 %  dog (2)\n"
            "dog          4        1  25.00 %    33.33 %  cat (1)\n"
            "eel          0        0        -     0.00 %  -\n");
  EXPECT_THAT(class_table(scores, {}), HasSubstr("\n0 "));
  EXPECT_THAT(class_table(scores, {}), HasSubstr("1 (2)"));
}

TEST(ConfusionFile, HasARowForEachLabel) {
  EXPECT_EQ(confusion_csv(example(), {"cat", "dog, small", "eel"}),
            "label,cat,\"dog, small\",eel,none\n"
            "cat,6,2,0,0\n"
            "\"dog, small\",1,1,1,1\n"
            "eel,0,0,0,0\n");
  ConfusionMatrix all_predicted(2);
  all_predicted.add(1, 0);
  EXPECT_EQ(confusion_csv(all_predicted, {}), "label,0,1\n0,0,0\n1,1,0\n");
}

TEST(ConfusionFile, SaysTheSameAsJson) {
  const json matrix = json::parse(confusion_json(example(), {}));
  EXPECT_EQ(matrix["classes"], json({"0", "1", "2"}));
  EXPECT_EQ(matrix["counts"], json({{6, 2, 0}, {1, 1, 1}, {0, 0, 0}}));
  EXPECT_EQ(matrix["no_prediction"], json({0, 1, 0}));
}

TEST(CsvField, IsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_field("T-shirt/top"), "T-shirt/top");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("the \"best\""), "\"the \"\"best\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(RunSummary, HoldsFiguresPerClassOnlyWhenTheyWereAskedFor) {
  RunSummary summary;
  EXPECT_FALSE(json::parse(summary_json(summary)).contains("per_class"));
  summary.per_class = class_scores(example());
  summary.class_names = {"cat", "dog"};
  const json classes = json::parse(summary_json(summary))["per_class"];
  EXPECT_EQ(classes[0],
            json::parse(R"({"class":0,"name":"cat","samples":8,"correct":6,"recall":0.75,
                                        "precision":0.8571428571428571,"confused_with":1,
                                        "confused":2})"));
  EXPECT_TRUE(classes[2]["name"].is_null());
  EXPECT_TRUE(classes[2]["recall"].is_null());
}

}  // namespace
}  // namespace ddp
