#include "launcher/placement.h"

#include <sched.h>

#include <gtest/gtest.h>

#include "comm/solo.h"

namespace ddp {
namespace {

/// A job whose other ranks answer a gather of masks as they are told to.
class WorldOfMasks final : public World {
 public:
  struct Rank {
    std::string host;
    bool same_mask;  ///< as this rank; otherwise one without a core in common
  };
  explicit WorldOfMasks(std::vector<Rank> others) : others_(std::move(others)) {}
  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(others_.size()) + 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string host_name() const override { return "here"; }
  void sum(std::span<std::int64_t>) override {}
  std::vector<std::string> gather(std::string_view mine) override {
    std::vector<std::string> all{std::string(mine)};
    for (const Rank& other : others_) {
      std::string mask(mine.substr(0, sizeof(cpu_set_t)));
      if (!other.same_mask)
        for (char& bits : mask) bits = static_cast<char>(~bits);
      all.push_back(mask + other.host);
    }
    return all;
  }
  std::string broadcast(std::string_view mine, int) override { return std::string(mine); }
  void barrier() override {}
  void announce(const Failure&) override {}
  std::optional<Failure> announced() const override { return std::nullopt; }
  void arrive() override {}
  std::vector<int> missing(int) override { return {}; }

 private:
  std::vector<Rank> others_;
};

cpu_set_t mask_of_this_thread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof(mask), &mask);
  return mask;
}

/// Puts the mask back that the test began with.
class Placement : public testing::Test {
 protected:
  ~Placement() override { sched_setaffinity(0, sizeof(before_), &before_); }
  const cpu_set_t before_ = mask_of_this_thread();
  const int cores_ = CPU_COUNT(&before_);
};

TEST_F(Placement, ARankAloneTakesAllItsCores) {
  comm::SoloWorld world("here");
  const ThreadPlacement placement = place_threads(world, /*keep_binding=*/true, 0);
  EXPECT_EQ(placement.cores, cores_);
  EXPECT_EQ(placement.sharing, 1);
  EXPECT_EQ(placement.threads, cores_);
}

TEST_F(Placement, RanksOfOneHostShareTheirCores) {
  WorldOfMasks world({{"here", true}, {"elsewhere", true}, {"here", false}});
  const ThreadPlacement placement = place_threads(world, true, 0);
  EXPECT_EQ(placement.sharing, 2) << "neither another host nor other cores are shared";
  EXPECT_EQ(placement.threads, std::max(cores_ / 2, 1));
}

TEST_F(Placement, MoreRanksThanCoresGetOneThreadEach) {
  WorldOfMasks world(std::vector<WorldOfMasks::Rank>(1000, {"here", true}));
  const ThreadPlacement placement = place_threads(world, true, 0);
  EXPECT_EQ(placement.sharing, 1001);
  EXPECT_EQ(placement.threads, 1);
}

TEST_F(Placement, ThreadsThatWereAskedForAreUsed) {
  comm::SoloWorld world("here");
  EXPECT_EQ(place_threads(world, true, 7).threads, 7);
}

TEST_F(Placement, WidensTheMaskUnlessToldNotTo) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one), &one);
  comm::SoloWorld world("here");
  EXPECT_EQ(place_threads(world, /*keep_binding=*/true, 0).cores, 1);
  EXPECT_GE(place_threads(world, /*keep_binding=*/false, 0).cores, cores_);
}

}  // namespace
}  // namespace ddp
