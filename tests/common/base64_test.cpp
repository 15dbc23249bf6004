#include "src/common/base64.hpp"

#include <gtest/gtest.h>

#include "src/common/error.hpp"

namespace gdr {
namespace {

TEST(Base64, TheExamplesOfItsRfcGoBothWays) {
  // RFC 4648, section 10
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"},
                                                          {"\xff\xfe\xfd", "//79"}};
  for (const auto& [plain, coded] : examples) {
    EXPECT_EQ(encode_base64(plain), coded);
    const auto bytes = decode_base64(coded, "here");
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), plain);
  }
}

TEST(Base64, OtherCharactersAreRefusedWithTheirPlaceAndLineEndsAreSkipped) {
  const auto bytes = decode_base64("Zm9v\r\nYmFy\n", "here");
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "foobar");
  try {
    (void)decode_base64("Zm9-", "dump.json: at /2");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "dump.json: at /2: not base64");
  }
}

}  // namespace
}  // namespace gdr
