#include "comm/signature.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/comm/rank_list.h"

namespace ddp::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Signature posted(const std::string& label, std::int64_t elements, DType dtype = DType::kF32,
                 CollectiveKind kind = CollectiveKind::kAllReduceSum) {
  return signature_of(3, {.kind = kind, .root = 0, .sequence = 7, .label = label},
                      {{elements}, dtype});
}

bool equal_by_extremes(const std::vector<Signature>& by_rank) {
  Extremes maxima = extremes_of(by_rank[0].key);
  for (const Signature& s : by_rank) {
    const Extremes theirs = extremes_of(s.key);
    std::ranges::transform(maxima, theirs, maxima.begin(),
                           [](auto a, auto b) { return std::max(a, b); });
  }
  return all_equal(maxima);
}

TEST(Signature, EqualCollectivesAgree) {
  EXPECT_TRUE(
      equal_by_extremes({posted("bucket 1", 9), posted("bucket 1", 9), posted("bucket 1", 9)}));
}

TEST(Signature, AnyDifferenceOnAnyRankShows) {
  const Signature right = posted("bucket 1", 9);
  Signature other_root = right, other_step = right, other_sequence = right;
  other_root.key.root = 1;
  other_step.key.plan_sequence = -1;
  other_sequence.key.sequence = 4;
  for (const Signature& wrong :
       {posted("bucket 2", 9), posted("bucket 1", 8), posted("bucket 1", 9, DType::kF64),
        posted("bucket 1", 9, DType::kF32, CollectiveKind::kBroadcast), other_root, other_step,
        other_sequence}) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      std::vector<Signature> by_rank(3, right);
      by_rank[rank] = wrong;
      EXPECT_FALSE(equal_by_extremes(by_rank));
    }
  }
}

TEST(Signature, LabelsThatDifferBehindTheShownPartDisagree) {
  const std::string prefix(200, 'x');
  EXPECT_FALSE(equal_by_extremes({posted(prefix + "a", 9), posted(prefix + "b", 9)}));
}

TEST(Signature, MismatchNamesTheOutvotedRankAndBothSides) {
  const std::vector<Signature> by_rank = {posted("bucket 1", 1000), posted("bucket 1", 1000),
                                          posted("bucket 1", 999), posted("bucket 1", 1000)};
  EXPECT_THAT(describe_mismatch(by_rank),
              AllOf(HasSubstr("collective 3"),
                    HasSubstr("ranks 0, 1, 3 posted all-reduce \"bucket 1\" of 1000 F32"),
                    HasSubstr("rank 2 posted all-reduce \"bucket 1\" of 999 F32 as collective 7 of the plan"),
                    HasSubstr("The majority is against rank 2.")));
}

TEST(Signature, TieBlamesNobody) {
  EXPECT_THAT(describe_mismatch(std::vector{posted("a", 1), posted("b", 1)}),
              AllOf(HasSubstr("rank 0 posted"), HasSubstr("rank 1 posted"),
                    HasSubstr("No side has a majority")));
}

TEST(RankList, WritesRunsAsRanges) {
  EXPECT_EQ(rank_list(std::vector{3}), "rank 3");
  EXPECT_EQ(rank_list(std::vector{0, 1}), "ranks 0, 1");
  EXPECT_EQ(rank_list(std::vector{0, 1, 2, 5, 7, 8, 9, 10}), "ranks 0-2, 5, 7-10");
}

}  // namespace
}  // namespace ddp::comm
