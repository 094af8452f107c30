#include "core/config/unused.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/config/resolve.h"
#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> unused_of(const std::vector<std::string>& arguments) {
  return unused_settings(from_flags(arguments));
}

TEST(UnusedSettings, AreSaidWithWhatTheyAreFor) {
  EXPECT_THAT(unused_of({"--eps", "1"}),
              ElementsAre("--eps 1 does nothing beside optimizer \"sgd\" (default): it is for "
                          "--optimizer adamw"));
  EXPECT_THAT(unused_of({"--optimizer", "lion", "--momentum", "0.5"}),
              ElementsAre("--momentum 0.5 does nothing beside --optimizer \"lion\": it is for "
                          "--optimizer sgd, lars"));
}

TEST(UnusedSettings, AreNoneWhereAllIsUsedOrNothingWasGiven) {
  EXPECT_THAT(unused_of({}), IsEmpty());
  EXPECT_THAT(unused_of({"--optimizer", "adamw", "--eps", "1", "--beta2", "0.5"}), IsEmpty());
  EXPECT_THAT(unused_of({"--schedule", "step", "--gamma", "0.5", "--step-every", "5"}), IsEmpty());
}

TEST(UnusedSettings, LeaveOutDefaultsThatAFileRepeats) {
  // As the record of a run does, which holds all values.
  const Configuration record = parse_config("beta1: 0.9\neps: 1e-08\nmomentum: 0.9\n", "run.pbtxt");
  EXPECT_THAT(unused_settings(record), IsEmpty());
  EXPECT_THAT(unused_settings(parse_config("beta1: 0.8", "run.pbtxt")), testing::SizeIs(1));
  EXPECT_THAT(unused_of({"--beta1", "0.9"}), testing::SizeIs(1)) << "typed by somebody";
}

TEST(UnusedSettings, AreNotedOnceWhenAConfigurationIsRead) {
  EXPECT_THAT(from_flags({"--gamma", "0.5"}).notes, testing::SizeIs(1));
}

TEST(UnusedSettings, LeaveOutWhatWasDerived) {
  const ResolvedConfig run = resolve(from_flags({}), {.ranks = 1, .train_samples = 1000});
  EXPECT_TRUE(run.configuration.values.has_beta2());
  EXPECT_THAT(unused_settings(run.configuration), IsEmpty());
}

TEST(UnusedSettings, NameFieldsAndValuesThatExist) {
  for (const ConfigField* field : config_fields()) {
    const std::string& used_by = flag_of(*field).used_by();
    if (used_by.empty()) continue;
    const std::size_t equals = used_by.find('=');
    const ConfigField* other =
        TrainConfig::descriptor()->FindFieldByName(used_by.substr(0, equals));
    ASSERT_NE(other, nullptr) << used_by;
    std::string user;
    std::istringstream users(used_by.substr(equals + 1));
    while (std::getline(users, user, '|'))
      EXPECT_THAT(allowed_values(*other), testing::Contains(user)) << field->name();
  }
}

}  // namespace
}  // namespace ddp
