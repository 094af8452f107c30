#include "core/base/nearest.h"

#include <gtest/gtest.h>

namespace ddp {
namespace {

TEST(Nearest, IsTheNameWithTheFewestEdits) {
  EXPECT_EQ(nearest("trian", {"plan", "train", "eval"}), "train");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Nearest, PrefersNamesThatBeginWithWhatWasTyped) {
  EXPECT_EQ(nearest("poly", {"cosine", "step", "one-cycle", "polynomial"}), "polynomial");
  EXPECT_EQ(nearest("--log", {"--lr", "--log-every", "--loader-threads"}), "--log-every");
  EXPECT_EQ(nearest("", {"abc", "x"}), "x") << "every name begins with nothing";
}

TEST(Nearest, IsSaidWithAllThatIsAllowed) {
  EXPECT_EQ(not_one_of("test", {"val", "train"}),
            "\"test\" is not one of val, train; did you mean val?");
}

}  // namespace
}  // namespace ddp
