#include "launcher/device.h"

#include <gmock/gmock.h>

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

cuda::GpuInfo gpu(int ordinal, const std::string& uuid, const std::string& name = "NVIDIA H200",
                  int major = 9) {
  return {.ordinal = ordinal, .name = name, .uuid = uuid, .major = major, .minor = 0};
}

RankSight sees(const std::string& host, int local_rank, std::vector<cuda::GpuInfo> gpus) {
  RankSight sight{.host = host,
                  .local_rank = local_rank,
                  .gpus = std::move(gpus),
                  .trouble = {},
                  .why_none = {}};
  if (sight.gpus.empty()) sight.why_none = "no NVIDIA driver is loaded";
  return sight;
}

/// `n` ranks on one host that all see the same `gpus` GPUs.
std::vector<RankSight> on_one_host(int n, int gpus) {
  std::vector<cuda::GpuInfo> all;
  for (int i = 0; i < gpus; ++i) all.push_back(gpu(i, fmt::format("GPU-{}", i)));
  std::vector<RankSight> ranks;
  for (int rank = 0; rank < n; ++rank) ranks.push_back(sees("box", rank, all));
  return ranks;
}

std::string refusal(const std::vector<RankSight>& ranks, const std::string& device,
                    const std::string& precision, ExitCode code = ExitCode::kDevice) {
  try {
    decide_device(ranks, device, precision);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(DecideDevice, GivesEachRankTheGpuOfItsLocalRank) {
  const DeviceDecision decision = decide_device(on_one_host(4, 8), "auto", "");
  EXPECT_EQ(decision.kind, BackendKind::kCuda);
  EXPECT_THAT(decision.ordinals, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(decision.warnings, IsEmpty());
}

TEST(DecideDevice, TakesTheOnlyGpuThatASchedulerShows) {
  const DeviceDecision decision =
      decide_device({sees("a", 0, {gpu(0, "GPU-x")}), sees("a", 1, {gpu(0, "GPU-y")}),
                     sees("b", 0, {gpu(0, "GPU-x")})},
                    "cuda", "");
  EXPECT_THAT(decision.ordinals, ElementsAre(0, 0, 0));
}

TEST(DecideDevice, ComputesInBf16OnAGpuAndInFp32OnTheCpuUnlessTold) {
  EXPECT_EQ(decide_device(on_one_host(1, 1), "auto", "").precision, "bf16");
  EXPECT_EQ(decide_device(on_one_host(1, 1), "cuda", "fp32").precision, "fp32");
  EXPECT_EQ(decide_device(on_one_host(1, 1), "cpu", "").precision, "fp32");
  EXPECT_EQ(decide_device(on_one_host(2, 0), "auto", "").precision, "fp32");
  EXPECT_EQ(decide_device(on_one_host(2, 2), "auto", "tf32").precision, "tf32");
}

TEST(DecideDevice, SaysWhyItIsTheCpuWhereNobodySaidSo) {
  EXPECT_EQ(decide_device(on_one_host(2, 0), "auto", "").note, "auto: no NVIDIA driver is loaded");
  EXPECT_EQ(decide_device(on_one_host(2, 2), "auto", "fp64").note,
            "auto: fp64 is computed on the CPU");
  EXPECT_EQ(decide_device(on_one_host(2, 2), "cpu", "").note, "");
}

TEST(DecideDevice, RefusesMoreRanksThanGpus) {
  EXPECT_EQ(refusal(on_one_host(3, 2), "auto", ""),
            "box runs 3 ranks, but shows 2 GPUs: start one rank per GPU (mpirun -np 2), or give "
            "--device cpu");
}

TEST(DecideDevice, RefusesTwoRanksOnOneGpu) {
  EXPECT_THAT(
      refusal(on_one_host(2, 1), "cuda", ""),
      AllOf(StartsWith("ranks 0 and 1 would share one GPU of box"), HasSubstr("mpirun -np 1")));
}

TEST(DecideDevice, RefusesAJobOfWhichOnlySomeRanksHaveGpus) {
  const std::vector<RankSight> ranks{sees("a", 0, {gpu(0, "GPU-x")}), sees("b", 0, {})};
  EXPECT_THAT(refusal(ranks, "auto", ""),
              AllOf(HasSubstr("rank 1 on b has no GPU"), HasSubstr("--device cpu")));
}

TEST(DecideDevice, RefusesWhatNeedsAGpuWhereThereIsNone) {
  EXPECT_THAT(refusal(on_one_host(2, 0), "cuda", ""),
              AllOf(StartsWith("--device cuda: "), HasSubstr("no NVIDIA driver is loaded")));
  EXPECT_THAT(refusal(on_one_host(1, 0), "auto", "bf16"),
              AllOf(StartsWith("--precision bf16: "), HasSubstr("--precision fp32")));
}

TEST(DecideDevice, RefusesFlagsThatExcludeEachOther) {
  EXPECT_THAT(refusal(on_one_host(1, 1), "cuda", "fp64", ExitCode::kUsage), HasSubstr("fp64"));
  EXPECT_THAT(refusal(on_one_host(1, 1), "cpu", "bf16", ExitCode::kUsage), HasSubstr("bf16"));
}

TEST(DecideDevice, DoesNotFallBackSilentlyFromABrokenDriver) {
  std::vector<RankSight> ranks = on_one_host(2, 0);
  ranks[1].trouble = "the NVIDIA driver supports CUDA up to 12.2";
  EXPECT_THAT(refusal(ranks, "auto", ""),
              AllOf(StartsWith("rank 1 on box: the NVIDIA driver"), HasSubstr("--device cpu")));
  EXPECT_EQ(decide_device(ranks, "cpu", "").kind, BackendKind::kCpu);
}

TEST(DecideDevice, RefusesAGpuThatIsTooOld) {
  EXPECT_THAT(refusal({sees("a", 0, {gpu(0, "GPU-x", "Tesla V100", 7)})}, "auto", ""),
              AllOf(HasSubstr("Tesla V100"), HasSubstr("8.0 is the least")));
}

TEST(DecideDevice, WarnsAboutGpusOfDifferentModels) {
  const std::vector<RankSight> ranks{sees("a", 0, {gpu(0, "GPU-x")}),
                                     sees("b", 0, {gpu(0, "GPU-y", "NVIDIA A100")})};
  EXPECT_THAT(
      decide_device(ranks, "auto", "").warnings,
      ElementsAre(AllOf(HasSubstr("NVIDIA A100 on rank 1"), HasSubstr("NVIDIA H200 on rank 0"))));
}

}  // namespace
}  // namespace ddp
