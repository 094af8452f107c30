#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/version.h"

namespace ddp {
namespace {

TEST(Version, IsThreeNumbers) {
  EXPECT_THAT(std::string(version()), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Version, CommitIsAHashOrUnknown) {
  EXPECT_TRUE(commit() == "unknown" || commit().size() == 40) << commit();
}

}  // namespace
}  // namespace ddp
