#include "core/config/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_testing.h"

namespace ddp {
namespace {

using testing::HasSubstr;

TEST(ConfigFields, EachSaysWhatItIsAndWhatHappensWhenUnset) {
  for (const ConfigField* field : config_fields()) {
    SCOPED_TRACE(field->name());
    const Flag& about = flag_of(*field);
    EXPECT_FALSE(about.help().empty());
    EXPECT_FALSE(about.group().empty());
    EXPECT_NE(field->has_default_value(), about.has_unset());
    EXPECT_FALSE(field->is_repeated());
    if (!about.excludes().empty()) {
      EXPECT_NE(TrainConfig::descriptor()->FindFieldByName(about.excludes()), nullptr);
    }
  }
}

TEST(ConfigFields, OfOneGroupStandTogether) {
  std::vector<std::string> groups;
  for (const ConfigField* field : config_fields())
    if (groups.empty() || groups.back() != flag_of(*field).group())
      groups.push_back(flag_of(*field).group());
  const std::size_t runs = groups.size();
  std::ranges::sort(groups);
  groups.erase(std::ranges::unique(groups).begin(), groups.end());
  EXPECT_EQ(groups.size(), runs);
}

TEST(ConfigFields, DefaultsAreLegal) {
  for (const ConfigField* field : config_fields()) {
    if (field->has_default_value()) {
      EXPECT_NO_THROW(check_value(TrainConfig(), *field, field->name()));
    }
  }
}

TEST(ConfigFields, EachTakesAnotherValueFromText) {
  for (const ConfigField* field : config_fields()) {
    TrainConfig config;
    set_from_text(config, *field, other_value(*field), "here");
    EXPECT_TRUE(is_set(config, *field)) << field->name();
    EXPECT_NE(value_text(config, *field), value_text(TrainConfig(), *field)) << field->name();
    clear_field(config, *field);
    EXPECT_EQ(config.ByteSizeLong(), 0U) << field->name();
  }
}

TEST(ConfigFields, LimitsAreLegalAndBeyondThemIsNot) {
  for (const ConfigField* field : config_fields()) {
    const Flag& about = flag_of(*field);
    const double step = field->cpp_type() == ConfigField::CPPTYPE_DOUBLE ? 1e-6 : 1;
    const auto set = [&](double value) {
      TrainConfig config;
      set_from_text(config, *field, fmt::format("{}", value), "here");
    };
    SCOPED_TRACE(field->name());
    if (about.has_min()) {
      EXPECT_NO_THROW(set(about.min()));
      EXPECT_THAT(config_error([&] { set(about.min() - step); }), HasSubstr("is below"));
    }
    if (about.has_above()) {
      EXPECT_NO_THROW(set(about.above() + step));
      EXPECT_THAT(config_error([&] { set(about.above()); }), HasSubstr("is not above"));
    }
    if (about.has_max()) {
      EXPECT_NO_THROW(set(about.max()));
      EXPECT_THAT(config_error([&] { set(about.max() + step); }), HasSubstr("is above"));
    }
  }
}

}  // namespace
}  // namespace ddp
