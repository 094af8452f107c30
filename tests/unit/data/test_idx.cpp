#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/idx.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/idx_files.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::size_t kHeader = 16;
constexpr std::size_t kRecord = 20;
constexpr std::size_t kMegabyte = 1 << 20;

class Idx : public testing::Test {
 protected:
  std::filesystem::path file() const { return directory_ / "images"; }

  Bytes read(const Bytes& bytes, int rank = 3) const {
    write_bytes(file(), bytes);
    return IdxReader(file(), rank).read();
  }
  /// The sentence of the error, which has to open with the file.
  std::string error(const Bytes& bytes, int rank = 3) const {
    std::string sentence = data_error([&] { read(bytes, rank); });
    EXPECT_EQ(sentence.find(file().string()), 0U) << sentence;
    return sentence;
  }
  static Bytes body(const Bytes& file) { return {file.begin() + kHeader, file.end()}; }

  TemporaryDirectory directory_;
};

TEST_F(Idx, ReadsPlainAndGzipAlike) {
  const Bytes images = idx_images(300, 28, 28);
  EXPECT_EQ(read(images), body(images));
  EXPECT_EQ(read(gzip(images)), body(images));
}

TEST_F(Idx, ReadsGzipOfSeveralMembers) {
  const Bytes images = idx_images(3);
  for (const std::size_t cut : {std::size_t{1}, kHeader, images.size() - 1}) {
    const auto middle = images.begin() + static_cast<std::ptrdiff_t>(cut);
    EXPECT_EQ(read(gzip({images.begin(), middle}) + gzip({middle, images.end()})), body(images));
  }
}

TEST_F(Idx, TellsExtentsAndOffsets) {
  write_bytes(file(), idx_images(3));
  const IdxReader reader(file(), 3);
  EXPECT_EQ(reader.extents(), (Shape{3, 4, 5}));
  EXPECT_EQ(reader.record_bytes(), 20);
  EXPECT_EQ(reader.offset(2), 56);
}

TEST_F(Idx, WhatWasReadBeforeAnErrorStays) {
  const Bytes images = idx_images(3);
  Bytes data;
  write_bytes(file(), {images.begin(), images.end() - 1});
  EXPECT_THROW(IdxReader(file(), 3).read_into(data), RecordError);
  EXPECT_EQ(data, Bytes(images.begin() + kHeader, images.end() - 1));
  write_bytes(file(), images + Bytes{0});
  data = {7};
  EXPECT_THROW(IdxReader(file(), 3).read_into(data), DataError);
  EXPECT_EQ(data, Bytes{7} + body(images)) << "appended to what is there";
}

TEST_F(Idx, KeepsTheFirstRecordsAndCountsAll) {
  // More than one chunk of reading, so that the border of what is kept lies inside one.
  const Bytes images = idx_images(1700, 28, 28);
  const Bytes all = body(images);
  for (const Bytes& bytes : {images, gzip(images)}) {
    write_bytes(file(), bytes);
    for (const std::int64_t keep : {0, 1, 1400, 1700, 5000}) {
      ByteHistogram histogram{};
      const auto kept = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(keep, 1700) * 28 * 28);
      EXPECT_EQ(IdxReader(file(), 3).read(keep, &histogram),
                Bytes(all.begin(), all.begin() + kept));
      EXPECT_EQ(std::accumulate(histogram.begin(), histogram.end(), std::size_t{0}), all.size());
      EXPECT_EQ(histogram[7], static_cast<std::size_t>(std::count(all.begin(), all.end(), 7)));
    }
  }
}

TEST_F(Idx, RefusesEveryOtherValueOfEveryHeaderByte) {
  const Bytes images = idx_images(3);
  for (std::size_t at = 0; at < kHeader; ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes wrong = images;
      wrong[at] = static_cast<std::uint8_t>(value);
      if (wrong == images) continue;
      const std::string sentence = error(wrong);
      if (at < 4) {
        EXPECT_THAT(sentence, HasSubstr(fmt::format("byte {} ", at)));
      } else {
        // A wrong extent shows either itself or in the length of the file.
        EXPECT_THAT(sentence, AnyOf(HasSubstr(fmt::format("byte {} ", at / 4 * 4)),
                                    HasSubstr("record "), HasSubstr("goes on at byte ")));
      }
    }
  }
}

TEST_F(Idx, SaysWhatIsWrongInTheHeader) {
  EXPECT_THAT(error(idx_labels({1, 2}), 3), HasSubstr("byte 3 gives 1 dimensions instead of 3"));
  EXPECT_THAT(error(idx_images(1), 1), HasSubstr("are the two files swapped?"));
  EXPECT_THAT(error(idx_header({0, 4, 5})), HasSubstr("byte 4 says that there are no records"));
  EXPECT_THAT(error(idx_header({1, 0, 5})), HasSubstr("byte 8 gives 0 pixels"));
  EXPECT_THAT(error(idx_header({1, 4, 4097})), HasSubstr("byte 12 gives 4097 pixels"));
  EXPECT_THAT(error(idx_header({0xffffffff, 4096, 4096})), HasSubstr("byte 4 says 4294967295"));
  EXPECT_THAT(error({'h', 'e', 'l', 'l', 'o'}), HasSubstr("this is no idx file"));
}

TEST_F(Idx, EveryTruncationNamesRecordAndByte) {
  const Bytes images = idx_images(3);
  for (std::size_t size = 0; size < images.size(); ++size) {
    const Bytes cut(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string end = fmt::format("ends at byte {},", size);
    if (size < kHeader) {
      EXPECT_THAT(error(cut), HasSubstr(end));
    } else {
      const std::string record = fmt::format("record {}: ", (size - kHeader) / kRecord);
      EXPECT_THAT(error(cut), AllOf(HasSubstr(end), HasSubstr(record)));
    }
    const std::string packed = error(gzip(cut));
    EXPECT_THAT(packed, HasSubstr(fmt::format("ends at unpacked byte {},", size)));
  }
}

TEST_F(Idx, EveryTruncationOfAGzipFileIsRefused) {
  const Bytes packed = gzip(idx_images(3));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const std::string sentence =
        error(Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)));
    if (size >= 2) {
      EXPECT_THAT(sentence,
                  HasSubstr(fmt::format("ends at byte {} in the middle of its gzip", size)));
    }
  }
}

TEST_F(Idx, RefusesTrailingBytes) {
  const Bytes images = idx_images(3);
  EXPECT_THAT(error(images + Bytes{0}), HasSubstr("goes on at byte 76,"));
  EXPECT_THAT(error(gzip(images + Bytes{0})), HasSubstr("goes on at unpacked byte 76,"));
  EXPECT_THAT(error(gzip(images) + gzip({0})), HasSubstr("goes on at unpacked byte 76,"));
  EXPECT_THAT(error(gzip(images) + Bytes{0, 0}), HasSubstr("gzip data is damaged at byte"));
  EXPECT_THAT(error(gzip(images) + Bytes(20, 'x')), HasSubstr("gzip data is damaged at byte"));
}

TEST_F(Idx, ChecksTheGzipChecksumAndLength) {
  const Bytes packed = gzip(idx_images(3));
  for (std::size_t back = 1; back <= 8; ++back) {
    Bytes wrong = packed;
    wrong[wrong.size() - back] ^= 1;
    EXPECT_THAT(error(wrong), HasSubstr("gzip data is damaged at byte"));
  }
}

TEST_F(Idx, DamagedGzipGivesTheSameDataOrAnError) {
  const Bytes images = idx_images(4);
  const Bytes packed = gzip(images);
  const PhiloxKey key = philox_key(1, RandomStream::kSynthetic);
  int refused = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    const PhiloxBlock random = philox(key, 0, round, 0);
    Bytes damaged = packed;
    for (std::uint32_t change = 0; change <= random[0] % 3; ++change) {
      const PhiloxBlock where = philox(key, 1, round, change);
      damaged[where[0] % damaged.size()] = static_cast<std::uint8_t>(where[1]);
    }
    write_bytes(file(), damaged);
    try {
      EXPECT_EQ(IdxReader(file(), 3).read(), body(images)) << "round " << round;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST_F(Idx, EveryFlippedBitOfAPlainFileIsRefusedOrStaysInItsPixel) {
  const Bytes images = idx_images(3);
  for (std::size_t bit = 0; bit < images.size() * 8; ++bit) {
    Bytes damaged = images;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    if (bit / 8 < kHeader) {
      error(damaged);
    } else {
      EXPECT_EQ(read(damaged), body(damaged));
    }
  }
}

TEST_F(Idx, MemoryGrowsWithWhatTheFileHoldsAndNotWithWhatItSays) {
  const Bytes claim = idx_header({0x7fffffff, 2, 2}) + Bytes(100);
  for (const Bytes& bytes : {claim, gzip(claim)}) {
    write_bytes(file(), bytes);
    test::take_allocations();
    data_error([&] { IdxReader(file(), 3).read(); });
    EXPECT_LE(test::take_allocations().largest, kMegabyte);
  }
}

TEST_F(Idx, UnpacksNoMoreThanTheHeaderSays) {
  const Bytes bomb = gzip(idx_images(3) + Bytes(16 * kMegabyte));
  write_bytes(file(), bomb);
  test::take_allocations();
  EXPECT_THAT(data_error([&] { IdxReader(file(), 3).read(); }),
              HasSubstr("goes on at unpacked byte 76,"));
  EXPECT_LE(test::take_allocations().largest, kMegabyte);
}

TEST_F(Idx, RefusesWhatIsNoReadableFile) {
  const auto open = [&] { IdxReader(file(), 3); };
  EXPECT_THAT(data_error(open), HasSubstr("No such file"));

  std::filesystem::create_directory(file());
  EXPECT_THAT(data_error(open), HasSubstr("is not a regular file"));
  std::filesystem::remove(file());

  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(data_error(open), HasSubstr("is not a regular file"));
  std::filesystem::remove(file());

  // Unreadable for everybody, root included.
  std::filesystem::create_symlink(file(), file());
  EXPECT_THAT(data_error(open), HasSubstr("cannot be opened: Too many levels of symbolic links"));
}

}  // namespace
}  // namespace ddp
