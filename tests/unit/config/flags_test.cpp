#include "core/config/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_directory.h"
#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

std::vector<std::string> help_lines() {
  CLI::App app;
  add_config_flags(app);
  std::vector<std::string> lines;
  std::istringstream help(app.help());
  for (std::string line; std::getline(help, line);) lines.push_back(line);
  return lines;
}

TEST(ConfigFlags, SetEachFieldAndOnlyIt) {
  for (const ConfigField* field : config_fields()) {
    const std::string value = other_value(*field);
    TrainConfig expected;
    set_from_text(expected, *field, value, "expected");
    const Configuration configuration = from_flags({flag_argument(*field, value)});
    EXPECT_EQ(configuration.values.DebugString(), expected.DebugString());
    EXPECT_EQ(origin_of(configuration, *field), "flag");
    EXPECT_EQ(configuration.origins.size(), 1U);
  }
}

TEST(ConfigFlags, TakeTheValueAsTheNextArgumentToo) {
  EXPECT_EQ(from_flags({"--micro-batch", "32", "--lr", "0.2"}).values.lr(), 0.2);
}

TEST(ConfigFlags, OfABoolNeedNoValue) {
  EXPECT_TRUE(from_flags({"--deterministic"}).values.deterministic());
  EXPECT_TRUE(from_flags({"--deterministic=true"}).values.deterministic());
  EXPECT_FALSE(from_flags({"--nesterov=false"}).values.nesterov());
  EXPECT_FALSE(from_flags({"--no-nesterov"}).values.nesterov());
}

TEST(ConfigFlags, AreListedOnceInTheHelpUnderTheirGroup) {
  const std::vector<std::string> lines = help_lines();
  for (const ConfigField* field : config_fields()) {
    const std::string name = "  " + flag_name(*field);
    std::string group, listed_under;
    int listed = 0;
    for (const std::string& line : lines) {
      if (!line.empty() && line.front() != ' ' && line.back() == ':')
        group = line.substr(0, line.size() - 1);
      if (!line.starts_with(name) || (line.size() > name.size() && line[name.size()] != ' '))
        continue;
      ++listed;
      listed_under = group;
    }
    EXPECT_EQ(listed, 1) << name;
    EXPECT_EQ(listed_under, flag_of(*field).group()) << name;
  }
}

TEST(ConfigFlags, HelpSaysDefaultRangeAndWhatUnsetMeans) {
  std::string help;
  for (const std::string& line : help_lines()) {
    EXPECT_LE(line.size(), 100U);
    help += line.substr(std::min(line.size(), line.find_first_not_of(' '))) + ' ';
  }
  for (const ConfigField* field : config_fields()) {
    const Flag& about = flag_of(*field);
    EXPECT_THAT(help, HasSubstr(about.help()));
    if (!field->has_default_value()) {
      EXPECT_THAT(help, HasSubstr("unset: " + about.unset()));
    }
    if (about.has_values()) {
      EXPECT_THAT(help, HasSubstr(flag_name(*field) + " " + about.values()));
    }
  }
  EXPECT_THAT(
      help,
      HasSubstr("number of classes (at least 2; unset: from the data set; of synthetic images"));
  EXPECT_THAT(help, HasSubstr("momentum of sgd and lars (0 to 0.9999; default 0.9)"));
  EXPECT_THAT(help, HasSubstr("epsilon of adamw (above 0; default 1e-08)"));
  EXPECT_THAT(help, HasSubstr("Nesterov momentum of sgd (default true; or --no-nesterov)"));
}

TEST(ConfigFlags, OfOtherFieldsAreUnknownToASubcommandOfSome) {
  CLI::App app;
  add_config_flags(app, std::array<std::string, 1>{"limit_val"});
  EXPECT_THAT(config_error([&] {
                parse_command_line(app, {"--lr", "1"});
              }),
              StartsWith("unknown flag --lr"));
  parse_command_line(app, {"--limit-val", "5"});
  EXPECT_EQ(read_configuration(app, "").values.limit_val(), 5);
}

TEST(ConfigFlags, RefuseBadValuesWithASentence) {
  EXPECT_EQ(flags_error({"--micro-batch", "-3"}), "--micro-batch: -3 is below 1");
  EXPECT_EQ(flags_error({"--eps", "0"}), "--eps: 0 is not above 0");
  EXPECT_EQ(flags_error({"--loader-threads", "257"}), "--loader-threads: 257 is above 256");
  EXPECT_EQ(flags_error({"--steps", "1e3"}), "--steps: \"1e3\" is not a whole number");
  EXPECT_EQ(flags_error({"--steps", "1.5"}), "--steps: \"1.5\" is not a whole number");
  EXPECT_EQ(flags_error({"--lr", "fast"}), "--lr: \"fast\" is not a number");
  EXPECT_EQ(flags_error({"--lr", "nan"}), "--lr: nan is not a finite number");
  EXPECT_EQ(flags_error({"--lr", "inf"}), "--lr: inf is not a finite number");
  EXPECT_THAT(flags_error({"--micro-batch", "99999999999"}),
              StartsWith("--micro-batch: 99999999999 is out of the range"));
  EXPECT_EQ(flags_error({"--nesterov=maybe"}), "--nesterov: \"maybe\" is neither true nor false");
  EXPECT_EQ(flags_error({"--no-nesterov=maybe"}), "--no-nesterov takes no value");
  EXPECT_EQ(flags_error({"--optimizer", "adam"}),
            "--optimizer: \"adam\" is not one of sgd, lars, adamw, lion; did you mean adamw?");
  EXPECT_EQ(flags_error({"--out", ""}), "--out: the value is empty");
  EXPECT_THAT(flags_error({"--eval-every", "often"}), StartsWith("--eval-every: \"often\""));
  EXPECT_THAT(flags_error({"--max-time", "10"}), StartsWith("--max-time: \"10\""));
}

TEST(ConfigFlags, WithoutTheirValueAreNamed) {
  EXPECT_THAT(flags_error({"--lr"}), StartsWith("--lr has no value"));
  EXPECT_EQ(flags_error({"--out", "--lr", "1"}), "--out has no value: --lr follows it");
  EXPECT_EQ(flags_error({"--out", "--lr"}), "--out has no value: --lr follows it");
}

TEST(ConfigFlags, GivenTwiceMustAgree) {
  EXPECT_EQ(from_flags({"--lr", "0.1", "--lr", "0.1"}).values.lr(), 0.1);
  EXPECT_EQ(flags_error({"--lr", "0.1", "--lr", "0.2"}),
            "--lr is given twice with different values, 0.1 and 0.2; give it once");
  EXPECT_THAT(flags_error({"--nesterov", "--no-nesterov"}),
              StartsWith("--nesterov is given twice"));
}

TEST(CommandLine, NamesTheNearestFlagOrCommand) {
  EXPECT_EQ(flags_error({"--micro-bacth", "3"}),
            "unknown flag --micro-bacth; did you mean --micro-batch?");
  EXPECT_EQ(flags_error({"--micro_batch=3"}),
            "unknown flag --micro_batch; did you mean --micro-batch?");
  EXPECT_EQ(flags_error({"-lr", "3"}), "unknown flag -lr; did you mean --lr?");
  EXPECT_EQ(flags_error({"--no-nestrov"}),
            "unknown flag --no-nestrov; did you mean --no-nesterov?");
  EXPECT_EQ(flags_error({"32"}), "unexpected argument 32: values stand after their --flag");
  CLI::App app;
  app.add_subcommand("train", "");
  app.add_subcommand("plan", "");
  EXPECT_EQ(config_error([&] { parse_command_line(app, {"trian"}); }),
            "unknown command trian; did you mean train?");
}

TEST(CommandLine, LeavesHelpToTheCaller) {
  CLI::App app;
  add_config_flags(app);
  EXPECT_THROW(parse_command_line(app, {"--help", "--no-such-flag"}), CLI::CallForHelp);
}

TEST(Configuration, LaysFlagsOverFilesOverDefaults) {
  const TemporaryDirectory directory;
  const std::string a = write_file(directory / "a.pbtxt", "model: \"mlp\"\nlr: 0.5\nseed: 2\n");
  const std::string b = write_file(directory / "b.pbtxt", "# second\nlr: 0.25\nseed: 3\n");
  const Configuration configuration = from_flags({"--seed", "4", "--config", a, "--config", b});
  EXPECT_EQ(configuration.values.model(), "mlp");
  EXPECT_EQ(configuration.values.lr(), 0.25);
  EXPECT_EQ(configuration.values.seed(), 4);
  EXPECT_EQ(configuration.values.optimizer(), "sgd");
  const auto origin = [&](int field) { return origin_of(configuration, config_field(field)); };
  EXPECT_EQ(origin(TrainConfig::kModelFieldNumber), a + ":1");
  EXPECT_EQ(origin(TrainConfig::kLrFieldNumber), b + ":2");
  EXPECT_EQ(origin(TrainConfig::kSeedFieldNumber), "flag");
  EXPECT_EQ(origin(TrainConfig::kOptimizerFieldNumber), "default");
  EXPECT_TRUE(configuration.notes.empty());
}

TEST(Configuration, LetsALaterLengthReplaceAnEarlierOne) {
  const TemporaryDirectory directory;
  const std::string file = write_file(directory / "a.pbtxt", "epochs: 3\n");
  const Configuration configuration = from_flags({"--config", file, "--steps", "10"});
  EXPECT_FALSE(configuration.values.has_epochs());
  EXPECT_EQ(configuration.values.steps(), 10);
  EXPECT_EQ(configuration.origins.count(TrainConfig::kEpochsFieldNumber), 0U);
}

TEST(Configuration, ReadsTheDefaultFileAloudAndOnlyWithoutConfig) {
  const TemporaryDirectory directory;
  const std::string standard = write_file(directory / "ddptrain.pbtxt", "seed: 5\n");
  const std::string other = write_file(directory / "other.pbtxt", "lr: 0.5\n");
  const Configuration read = from_flags({}, standard);
  EXPECT_EQ(read.values.seed(), 5);
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_THAT(read.notes[0], HasSubstr(standard));
  EXPECT_FALSE(from_flags({"--config", other}, standard).values.has_seed());
  const Configuration absent = from_flags({}, (directory / "absent.pbtxt").string());
  EXPECT_EQ(absent.values.ByteSizeLong(), 0U);
  EXPECT_TRUE(absent.notes.empty());
}

TEST(Configuration, NeedsTheFilesItIsGiven) {
  const TemporaryDirectory directory;
  const std::string missing = (directory / "missing.pbtxt").string();
  EXPECT_THAT(
      flags_error({"--config", missing}),
      AllOf(StartsWith("configuration file: "), HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(flags_error({"--config", directory.path().string()}), HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace ddp
