#include "core/config/difference.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using Arguments = std::vector<std::string>;

std::string differences(std::initializer_list<Arguments> by_rank) {
  std::vector<std::string> serialized;
  for (const Arguments& arguments : by_rank)
    serialized.push_back(from_flags(arguments).values.SerializeAsString());
  return describe_differences(serialized);
}

TEST(ConfigDifference, IsEmptyWhenRanksAgree) {
  EXPECT_EQ(differences({{}}), "");
  EXPECT_EQ(differences({{"--lr", "0.5"}, {"--lr", "0.5"}}), "");
  EXPECT_EQ(differences({{}, {"--model", "convnet"}}), "")
      << "a default that is set is the default";
}

TEST(ConfigDifference, NamesTheFieldBothSidesAndTheRanks) {
  EXPECT_EQ(differences({{"--model", "mlp"}, {}, {}, {}}),
            "model: \"mlp\" on rank 0; \"convnet\" on ranks 1-3\n");
  EXPECT_EQ(differences({{"--seed", "2"}, {}, {"--seed", "2"}, {"--seed", "3"}, {}, {}}),
            "seed: 2 on ranks 0, 2; 1 on ranks 1, 4-5; 3 on rank 3\n");
}

TEST(ConfigDifference, TellsUnsetFromZero) {
  EXPECT_EQ(differences({{"--lr", "0"}, {}}), "lr: 0 on rank 0; unset on rank 1\n");
}

TEST(ConfigDifference, IsSeenInEveryFieldThatMustAgreeAndInNoOther) {
  for (const ConfigField* field : config_fields()) {
    const std::string text = differences({{}, {flag_argument(*field, other_value(*field))}});
    if (flag_of(*field).per_rank())
      EXPECT_EQ(text, "") << field->name();
    else
      EXPECT_EQ(text.substr(0, field->name().size() + 1), field->name() + ":");
  }
}

TEST(ConfigDifference, OfBytesThatAreNoConfigurationNamesTheRank) {
  try {
    describe_differences(std::vector<std::string>{"", "\xff"});
    FAIL() << "no error";
  } catch (const CommunicationError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 36), "the configuration that rank 1 sent c");
  }
}

}  // namespace
}  // namespace ddp
