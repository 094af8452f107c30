#include "core/checkpoint/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& header, std::size_t buffer_bytes) {
  try {
    parse_safetensors_header("model.safetensors", header, buffer_bytes);
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), StartsWith("model.safetensors: "));
    return error.what();
  }
  return "accepted";
}

/// A header with one tensor "w" described by `entry`.
std::string one(const std::string& entry) { return R"({"w":)" + entry + "}"; }

TEST(SafetensorsHeader, TakesTensorsInTheOrderOfTheirBytes) {
  const SafetensorsHeader header = parse_safetensors_header(
      "f",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"z":{"shape":[1],"data_offsets":[0,8],"dtype":"F64"}}  )",
      16);
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[0].name, "z");
  EXPECT_EQ(header.entries[0].type, (TensorType{{1}, DType::kF64}));
  EXPECT_EQ(header.entries[1].name, "a");
  EXPECT_EQ(header.entries[1].begin, 8U);
}

TEST(SafetensorsHeader, RefusesWhatIsNotAJsonObject) {
  EXPECT_THAT(refusal("", 0), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal(" {}", 0), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal("[]", 0), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal("{", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{}x", 0), HasSubstr("not valid JSON at offset 10"));
  EXPECT_THAT(refusal(std::string("{}\0{}", 5), 0), HasSubstr("not valid JSON at offset 10"));
  EXPECT_THAT(refusal("{\"\xff\":1}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\":1,}", 0), HasSubstr("not valid JSON"));
}

TEST(SafetensorsHeader, SurvivesDeepNesting) {
  EXPECT_THAT(refusal("{\"w\":" + std::string(100'000, '['), 0), HasSubstr("not valid JSON"));
  std::string nested = "{\"w\":";
  for (int i = 0; i < 20'000; ++i) nested += "{\"a\":";
  EXPECT_THAT(refusal(nested, 0), HasSubstr("not valid JSON"));
}

TEST(SafetensorsHeader, RefusesDuplicateKeysAnywhere) {
  const std::string entry = R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal(R"({"w":)" + entry + R"(,"w":)" + entry + "}", 4), HasSubstr("'w' twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":"1","a":"1"}})", 0), HasSubstr("'a' twice"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[],"shape":[],"data_offsets":[0,4]})"), 4),
              HasSubstr("'shape' twice"));
  // The same key in different objects is no duplicate.
  EXPECT_EQ(refusal(R"({"__metadata__":{"w":"1","dtype":"2"},"w":)" + entry + "}", 4), "accepted");
}

TEST(SafetensorsHeader, MetadataIsText) {
  EXPECT_THAT(refusal(R"({"__metadata__":[]})", 0), HasSubstr("__metadata__ is not an object"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", 0), HasSubstr("'a' is not text"));
}

TEST(SafetensorsHeader, EntriesHaveExactlyTheirThreeFields) {
  for (const char* entry : {"1", "[]", "{}", R"({"dtype":"F32","shape":[]})",
                            R"({"dtype":"F32","shape":[],"offsets":[0,4]})",
                            R"({"dtype":"F32","shape":[],"data_offsets":[0,4],"strides":[]})"})
    EXPECT_THAT(refusal(one(entry), 4),
                AllOf(HasSubstr("tensor 'w'"), HasSubstr("dtype, shape and data_offsets")))
        << entry;
}

TEST(SafetensorsHeader, RefusesUnknownDtypes) {
  EXPECT_THAT(refusal(one(R"({"dtype":"F16","shape":[2],"data_offsets":[0,4]})"), 4),
              HasSubstr("tensor 'w' has dtype F16"));
  EXPECT_THAT(refusal(one(R"({"dtype":"f32","shape":[],"data_offsets":[0,4]})"), 4),
              HasSubstr("dtype f32"));
  EXPECT_THAT(refusal(one(R"({"dtype":4,"shape":[],"data_offsets":[0,4]})"), 4),
              HasSubstr("dtype is not text"));
}

TEST(SafetensorsHeader, RefusesImpossibleShapes) {
  const auto with_shape = [](const std::string& shape) {
    return refusal(one(R"({"dtype":"F32","data_offsets":[0,4],"shape":)" + shape + "}"), 4);
  };
  EXPECT_THAT(with_shape("4"), HasSubstr("shape is not a list"));
  EXPECT_THAT(with_shape("[-1]"), HasSubstr("holds -1"));
  EXPECT_THAT(with_shape("[1.0]"), HasSubstr("holds 1.0"));
  EXPECT_THAT(with_shape("[\"1\"]"), HasSubstr("holds \"1\""));
  EXPECT_THAT(with_shape("[9223372036854775808]"), HasSubstr("holds 9223372036854775808"));
  EXPECT_THAT(with_shape("[1,1,1,1,1,1]"), HasSubstr("6 dimensions"));
  EXPECT_THAT(with_shape("[4294967296,4294967296]"), HasSubstr("overflows"));
  // 2^62 elements of 4 bytes: 2^64 would wrap to the 0 bytes of an empty tensor.
  EXPECT_THAT(
      refusal(one(R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]})"), 0),
      HasSubstr("overflows"));
  EXPECT_THAT(with_shape("[2]"), HasSubstr("4 bytes at offset"));
}

TEST(SafetensorsHeader, RefusesImpossibleOffsets) {
  const auto with_offsets = [](const std::string& offsets) {
    return refusal(one(R"({"dtype":"F32","shape":[],"data_offsets":)" + offsets + "}"), 4);
  };
  for (const char* offsets : {"0", "[]", "[0]", "[0,4,8]", "[0,-4]", "[0,4.0]", "[\"0\",4]"})
    EXPECT_THAT(with_offsets(offsets), HasSubstr("not two offsets")) << offsets;
  EXPECT_THAT(with_offsets("[4,0]"), HasSubstr("4 and 0 are out of order"));
  EXPECT_THAT(with_offsets("[0,5]"), HasSubstr("5 bytes at offset"));
}

TEST(SafetensorsHeader, RefusesHolesOverlapAndBytesOfNobody) {
  const auto two = [](std::size_t first, std::size_t second, std::size_t buffer_bytes) {
    return refusal(fmt::format(R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":[{},{}]}},)"
                               R"("b":{{"dtype":"F32","shape":[2],"data_offsets":[{},{}]}}}})",
                               first, first + 8, second, second + 8),
                   buffer_bytes);
  };
  EXPECT_EQ(two(0, 8, 16), "accepted");
  EXPECT_EQ(two(8, 0, 16), "accepted");
  EXPECT_THAT(two(0, 12, 20), AllOf(HasSubstr("tensor 'b' starts at offset"), HasSubstr("behind")));
  EXPECT_THAT(two(0, 4, 12), AllOf(HasSubstr("tensor 'b' starts at offset"), HasSubstr("before")));
  EXPECT_THAT(two(0, 0, 8), HasSubstr("before"));
  EXPECT_THAT(two(4, 12, 20), AllOf(HasSubstr("tensor 'a'"), HasSubstr("behind")));
  EXPECT_THAT(two(0, 8, 15), AllOf(HasSubstr("tensor 'b' ends"), HasSubstr("bytes")));
  EXPECT_THAT(two(0, 8, 17), HasSubstr("belong to no tensor"));
}

}  // namespace
}  // namespace ddp
