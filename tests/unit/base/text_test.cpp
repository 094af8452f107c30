#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "core/base/philox.h"
#include "core/base/text.h"

namespace ddp {
namespace {

TEST(NumberText, ReadsBackAsTheSameDouble) {
  const PhiloxKey key = philox_key(1, RandomStream::kSynthetic);
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const PhiloxBlock bits = philox(key, 0, 0, i);
    const double value = std::bit_cast<double>((std::uint64_t{bits[0]} << 32) | bits[1]);
    if (value != value) continue;
    const std::string text = number_text(value);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
  }
}

TEST(CountText, HasAPluralButForOne) {
  EXPECT_EQ(count_text(0, "rank"), "0 ranks");
  EXPECT_EQ(count_text(1, "rank"), "1 rank");
  EXPECT_EQ(count_text(12, "rank"), "12 ranks");
}

TEST(NumberText, IsShortest) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(2.5e-7), "2.5e-07");
  EXPECT_EQ(number_text(100000), "100000");
  EXPECT_EQ(number_text(static_cast<double>(0.1F)), "0.10000000149011612");
}

TEST(NumberText, NamesWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number_text(nan), "nan");
  EXPECT_EQ(number_text(-nan), "nan");
  EXPECT_EQ(number_text(infinity), "inf");
  EXPECT_EQ(number_text(-infinity), "-inf");
}

TEST(NumberText, AppendsInPlace) {
  std::string out = "x=";
  append_number(out, 0.25);
  EXPECT_EQ(out, "x=0.25");
}

TEST(HumanBytes, ChoosesTheUnitSoThatTheNumberStaysBelow1024) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(std::uint64_t{139} << 30), "139.0 GiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(HumanDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(human_duration(0.0123), "12 ms");
  EXPECT_EQ(human_duration(4.21), "4.2 s");
  EXPECT_EQ(human_duration(59.96), "1m00s");
  EXPECT_EQ(human_duration(187), "3m07s");
  EXPECT_EQ(human_duration(3599.6), "1h00m");
  EXPECT_EQ(human_duration(2 * 3600 + 5 * 60), "2h05m");
  EXPECT_EQ(human_duration(76 * 3600), "3d04h");
}

TEST(HumanDuration, UnknownIsAQuestionMark) {
  EXPECT_EQ(human_duration(-1), "?");
  EXPECT_EQ(human_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(human_duration(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(AlignColumns, PadsToTheWidestCell) {
  EXPECT_EQ(align_columns({{"model", "mlp"}, {"global batch", "128"}}),
            "model         mlp\n"
            "global batch  128\n");
}

TEST(AlignColumns, AlignsNumbersToTheRight) {
  EXPECT_EQ(align_columns({{"op", "FLOPs", ""}, {"conv1", "7", "x"}, {"relu"}}, "lr"),
            "op     FLOPs\n"
            "conv1      7  x\n"
            "relu\n");
}

}  // namespace
}  // namespace ddp
