#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/configuration.h"
#include "core/config/resolve.h"
#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::HasSubstr;

/// Every field set to something other than its default.
Configuration everything_set() {
  std::vector<std::string> arguments;
  for (const ConfigField* field : config_fields())
    arguments.push_back(flag_argument(*field, other_value(*field)));
  return from_flags(arguments);
}

TEST(PrintConfig, ReadsBackAsTheSameValues) {
  for (const PrintStyle style : {PrintStyle::kFull, PrintStyle::kDiff})
    for (const Configuration& configuration :
         {everything_set(), Configuration(), from_flags({"--lr", "0", "--weight-decay=3e-7"})})
      expect_same_values(parse_config(print_config(configuration, style), "printed").values,
                         configuration.values);
}

TEST(PrintConfig, ReadsBackAsAskedAndNotAsDerived) {
  const Configuration asked = from_flags({"--micro-batch", "16", "--optimizer", "adamw"});
  const ResolvedConfig run = resolve(asked, {.ranks = 3, .train_samples = 1000});
  const std::string text = print_config(run.configuration, PrintStyle::kFull);
  EXPECT_THAT(text, testing::ContainsRegex("\n# global_batch: 48 +# derived\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n# lr: 0.001 +# derived\n"));
  expect_same_values(parse_config(text, "printed").values, asked.values);
}

TEST(PrintConfig, SaysTheOriginOnEachLine) {
  Configuration configuration = parse_config("\nmodel: \"mlp\"", "run.pbtxt");
  lay_over(configuration, from_flags({"--seed", "2"}));
  const std::string text = print_config(configuration, PrintStyle::kFull);
  EXPECT_THAT(text, testing::ContainsRegex("\nmodel: \"mlp\" +# run.pbtxt:2\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nseed: 2 +# flag\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\noptimizer: \"sgd\" +# default\n"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "\n# classes: +# unset: from the data set; of synthetic images[^\n]*\n"));
  for (const ConfigField* field : config_fields())
    EXPECT_THAT(
        text,
        HasSubstr("\n" + std::string(value_text(configuration.values, *field).empty() ? "# " : "") +
                  field->name() + ":"));
}

TEST(PrintConfig, DiffHoldsWhatDiffersFromDefaultsOnly) {
  EXPECT_EQ(print_config(Configuration(), PrintStyle::kDiff), "");
  const Configuration asked = from_flags({"--seed", "1", "--momentum", "0.8"});
  const ResolvedConfig run = resolve(asked, {.ranks = 2, .train_samples = 1000});
  const std::string text = print_config(run.configuration, PrintStyle::kDiff);
  EXPECT_THAT(text, testing::MatchesRegex("momentum: 0.8 +# flag\n"));
}

}  // namespace
}  // namespace ddp
