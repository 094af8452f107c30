#include "core/config/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ConfigFile, SetsFieldsAndKnowsTheirLines) {
  const Configuration configuration =
      parse_config("# a comment\nmodel: \"mlp\"  micro_batch: 32\n\nnesterov: false", "run.pbtxt");
  EXPECT_EQ(configuration.values.model(), "mlp");
  EXPECT_EQ(configuration.values.micro_batch(), 32);
  EXPECT_FALSE(configuration.values.nesterov());
  const std::map<int, std::string> expected{{TrainConfig::kModelFieldNumber, "run.pbtxt:2"},
                                            {TrainConfig::kMicroBatchFieldNumber, "run.pbtxt:2"},
                                            {TrainConfig::kNesterovFieldNumber, "run.pbtxt:4"}};
  EXPECT_EQ(configuration.origins, expected);
}

TEST(ConfigFile, MayBeEmpty) { EXPECT_EQ(parse_config("", "run.pbtxt").values.ByteSizeLong(), 0U); }

TEST(ConfigFile, NamesAnUnknownFieldWhereItStandsAndTheNearest) {
  EXPECT_EQ(file_error("model: \"mlp\"\nmicro_bacth: 3\n"),
            "run.pbtxt:2:1: unknown field micro_bacth; did you mean micro_batch?");
  EXPECT_EQ(file_error("\tmicro-batch\t: 3"),
            "run.pbtxt:1:2: unknown field micro-batch; did you mean micro_batch?");
  EXPECT_EQ(file_error("seed: 1 sed:2"), "run.pbtxt:1:9: unknown field sed; did you mean seed?");
  EXPECT_EQ(file_error("seed: 1\nmodl # model\n : 3"),
            "run.pbtxt:2:1: unknown field modl; did you mean model?");
  EXPECT_EQ(file_error("seed: 1\nmodl"), "run.pbtxt:2:1: unknown field modl; did you mean model?");
}

TEST(ConfigFile, RefusesBadValuesWhereTheyStand) {
  EXPECT_EQ(file_error("seed: 1\n  micro_batch: -3"), "run.pbtxt:2:3: micro_batch: -3 is below 1");
  EXPECT_EQ(file_error("seed: 1\tlr: -1"), "run.pbtxt:1:9: lr: -1 is below 0");
  EXPECT_EQ(file_error("lr: nan"), "run.pbtxt:1:1: lr: nan is not a finite number");
  EXPECT_THAT(file_error("\nwarmup: \"x\""), StartsWith("run.pbtxt:2:1: warmup: \"x\" is not"));
  EXPECT_THAT(file_error("optimizer: \"adam\""), HasSubstr("did you mean adamw?"));
}

TEST(ConfigFile, RefusesBadSyntaxWhereItStands) {
  EXPECT_THAT(file_error("steps: \"4\""), StartsWith("run.pbtxt:1:8: "));
  EXPECT_THAT(file_error("steps: 99999999999999999999"), StartsWith("run.pbtxt:1:8: "));
  EXPECT_THAT(file_error("seed: 1\nmodel: mlp"), StartsWith("run.pbtxt:2:8: "));
  EXPECT_THAT(file_error("seed: 1\nmodel: \"mlp"), StartsWith("run.pbtxt:2:12: "));
  EXPECT_THAT(file_error("nesterov: yes"), StartsWith("run.pbtxt:1:"));
  EXPECT_THAT(file_error("\n\nmodel {}"), StartsWith("run.pbtxt:3:"));
  EXPECT_THAT(file_error("steps: 4 }"), StartsWith("run.pbtxt:1:10: "));
  EXPECT_THAT(file_error("50: 4"), StartsWith("run.pbtxt:1:1: "));
  EXPECT_THAT(file_error("[ddp.flag]: 4"), StartsWith("run.pbtxt:1:"));
  EXPECT_THAT(file_error("seed: 1\n\x01"), StartsWith("run.pbtxt:2:1: "));
}

TEST(ConfigFile, HoldsAFieldOnce) {
  EXPECT_THAT(file_error("steps: 4\nsteps: 4"),
              testing::AllOf(StartsWith("run.pbtxt:2:"), HasSubstr("\"steps\"")));
}

TEST(ConfigFile, ThatIsDamagedIsReadOrRefusedAtAPlace) {
  const std::string whole =
      "# settings\nmodel: \"mlp\"\n\tlr: 0.5  micro_batch: 32\n\nnesterov: false # last\n";
  const auto read = [](const std::string& text) {
    try {
      parse_config(text, "run.pbtxt");
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::ContainsRegex("^run.pbtxt:[1-7]:[1-9][0-9]*: ")) << text;
      return false;
    }
    return true;
  };
  ASSERT_TRUE(read(whole));
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    refused += !read(whole.substr(0, i));
    for (const char* insert : {"", "x", ":", "\"", "\t", "\n", "{", "-", "\xff", "\x01"})
      refused += !read(std::string(whole).replace(i, 1, insert));
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace ddp
