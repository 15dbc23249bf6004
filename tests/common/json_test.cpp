#include "src/common/json.hpp"

#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "src/common/json_reader.hpp"

namespace {

using gdr::json::Array;
using gdr::json::Node;
using gdr::json::Object;
using gdr::json::ObjectReader;
using gdr::json::Value;

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
    return "no error";
  } catch (const gdr::InputError& error) {
    return error.what();
  }
}

std::string parse_error(std::string_view text) {
  return error_of([&] { (void)gdr::json::parse(text, "f.json"); });
}

TEST(Json, ParsesEveryKind) {
  const Value value = gdr::json::parse(
      R"({"n": null, "t": true, "i": -3, "d": 2.5, "e": 1e3, "s": "a\u00e4\n", "a": [1, []], "o": {}})",
      "f");
  const Object expected{{"n", nullptr},
                        {"t", true},
                        {"i", -3},
                        {"d", 2.5},
                        {"e", 1000.0},
                        {"s", "a\xc3\xa4\n"},
                        {"a", Array{1, Array{}}},
                        {"o", Object{}}};
  EXPECT_EQ(value, Value(expected));
  EXPECT_EQ(gdr::json::parse("9223372036854775807", "f"), Value(std::int64_t{9223372036854775807}));
  EXPECT_EQ(gdr::json::parse("-9223372036854775808", "f"),
            Value(std::numeric_limits<std::int64_t>::min()));
}

TEST(Json, RefusesAndSaysWhere) {
  EXPECT_EQ(parse_error(""),
            "f.json: at line 1, column 1: syntax error while parsing value - unexpected end of "
            "input; expected '[', '{', or a literal");
  EXPECT_EQ(parse_error("{\"a\": 1, \"b\": 2, \"a\": 3}"),
            "f.json: at /: the name \"a\" appears twice in one object; it must be unique");
  EXPECT_EQ(parse_error("18446744073709551615"),
            "f.json: at /: the integer 18446744073709551615 is too large");
  EXPECT_EQ(parse_error("9223372036854775808"),
            "f.json: at /: the integer 9223372036854775808 is too large");
  EXPECT_EQ(parse_error("-99999999999999999999"),
            "f.json: at /: the integer -99999999999999999999 is too large");
  EXPECT_EQ(parse_error("1e999"), "f.json: number overflow parsing '1e999'");
  EXPECT_EQ(parse_error("[1] x"),
            "f.json: at line 1, column 5: syntax error while parsing value - invalid literal; last "
            "read: '1] x'; expected end of "
            "input");
  std::string zeros;
  for (int i = 0; i < 64; ++i) zeros += "/0";
  EXPECT_EQ(parse_error(R"({"a": [1, {"b": 2, "c": {"d": 1, "d": 2}}]})"),
            "f.json: at /a/1/c: the name \"d\" appears twice in one object; it must be unique");
  EXPECT_EQ(parse_error(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_EQ(parse_error(std::string(65, '[') + std::string(65, ']')),
            "f.json: at " + zeros + ": nested deeper than 64 levels");
  for (const char* text : {"NaN", "[1,]", "{a: 1}", "'a'", "01", "\"\x01\"", "\"\\ud800\"",
                           "/*c*/ 1", "{\"a\" 1}", "\"\xff\""}) {
    const std::string error = parse_error(text);
    EXPECT_TRUE(error.starts_with("f.json: at line 1, column ")) << error;
    EXPECT_EQ(error.find_first_of("\n\xff"), std::string::npos) << error;
  }
}

TEST(Json, DumpsWhatItReadsBack) {
  const char* const text =
      R"({"s": "\"\\\n\u0007\u00e4", "list": [1, 2.5, true, null, {}, []], "long": {"a": "0123456789", "b": "0123456789", "c": "0123456789"}})";
  const Value value = gdr::json::parse(text, "f");
  for (const int width : {1, 20, 60, 110, 1000}) {
    const std::string dumped = gdr::json::dump(value, width);
    EXPECT_EQ(gdr::json::parse(dumped, "dumped"), value) << dumped;
    EXPECT_EQ(dumped.back(), '\n');
  }
  EXPECT_EQ(gdr::json::dump(gdr::json::parse("[0.1, 3.0, 1e100]", "f")), "[0.1, 3, 1e+100]\n");
  EXPECT_EQ(gdr::json::dump(Value(1.0 / 0.0)), "null\n");  // JSON has no infinity
  EXPECT_EQ(gdr::json::dump(Object{{"a", 1}, {"b", Array{1, 2}}}, 12),
            "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ]\n}\n");
}

TEST(Json, SetKeepsThePlace) {
  Value value;
  value.set("a", 1);
  value.set("b", 2);
  value.set("a", 3);
  EXPECT_EQ(value, Value(Object{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(value.find("c"), nullptr);
  EXPECT_EQ(Value(1).find("a"), nullptr);
}

/// The reader's error for a document of one member, "x".
template <typename Read>
std::string read_error(const char* text, Read read) {
  const Value document = gdr::json::parse(text, "f.json");
  return error_of([&] {
    ObjectReader object(Node(document, "f.json"));
    read(object.required("x"));
  });
}

TEST(JsonReader, EveryErrorNamesFilePathFoundAndAllowed) {
  EXPECT_EQ(read_error(R"({"x": 1})", [](const Node& n) { (void)n.string(); }),
            "f.json: at /x: found 1, allowed: a string");
  EXPECT_EQ(read_error(R"({"x": "a b"})", [](const Node& n) { (void)n.name(); }),
            "f.json: at /x: found \"a b\", allowed: a name of letters, digits, '-', '_' and '.'");
  EXPECT_EQ(read_error(R"({"x": "yes"})", [](const Node& n) { (void)n.boolean(); }),
            "f.json: at /x: found \"yes\", allowed: true or false");
  EXPECT_EQ(read_error(R"({"x": 3.0})", [](const Node& n) { (void)n.integer(1, 4); }),
            "f.json: at /x: found 3.0, allowed: an integer from 1 to 4");
  EXPECT_EQ(read_error(R"({"x": 5})", [](const Node& n) { (void)n.integer(1, 4); }),
            "f.json: at /x: found 5, allowed: an integer from 1 to 4");
  EXPECT_EQ(read_error(R"({"x": 0})", [](const Node& n) { (void)n.integer(1, 4); }),
            "f.json: at /x: found 0, allowed: an integer from 1 to 4");
  EXPECT_EQ(read_error(R"({"x": 4096})", [](const Node& n) { (void)n.bytes(); }),
            "f.json: at /x: found 4096, allowed: a string with a unit such as \"4KiB\"");
  EXPECT_EQ(read_error(R"({"x": 25})", [](const Node& n) { (void)n.bandwidth(); }),
            "f.json: at /x: found 25, allowed: a string with a unit such as \"25GB/s\"");
  EXPECT_EQ(read_error(R"({"x": []})", [](const Node& n) { (void)n.duration(); }),
            "f.json: at /x: found an array, allowed: a string with a unit such as \"105ns\"");
  EXPECT_EQ(read_error(R"({"x": {}})", [](const Node& n) { (void)n.array(); }),
            "f.json: at /x: found an object, allowed: an array");
  EXPECT_EQ(read_error(R"({"x": null})", [](const Node& n) { ObjectReader object(n); }),
            "f.json: at /x: found null, allowed: an object");
  EXPECT_EQ(read_error(R"({"x": [1, {"y": "c"}]})",
                       [](const Node& n) {
                         static constexpr std::array<std::string_view, 2> allowed{"a", "b"};
                         (void)ObjectReader(n.array().at(1)).required("y").choice(allowed);
                       }),
            "f.json: at /x/1/y: found \"c\", allowed: a, b");
  EXPECT_EQ(read_error(R"({"y": 1})", [](const Node&) {}),
            "f.json: at /: the member \"x\" is missing; it is required");
}

TEST(JsonReader, LimitsAreIncluded) {
  for (const char* text : {R"({"x": 1})", R"({"x": 4})"})
    EXPECT_EQ(read_error(text, [](const Node& n) { (void)n.integer(1, 4); }), "no error");
  EXPECT_EQ(read_error(R"({"x": 0})", [](const Node& n) { (void)n.bytes(); }), "no error");
}

TEST(JsonReader, FinishRefusesWhatNobodyAskedFor) {
  const Value document = gdr::json::parse(R"({"format": 1, "a": 1, "b\n": 2})", "f.json");
  EXPECT_EQ(error_of([&] {
              ObjectReader object(Node(document, "f.json"));
              object.expect_format();
              (void)object.optional("a");
              (void)object.optional("c");
              object.finish();
            }),
            "f.json: at /: found unknown member \"b\\x0a\", allowed: format, a, c");
}

TEST(JsonReader, OnlyFormatOneIsRead) {
  for (const char* text : {R"({"format": 2})", R"({"format": "1"})", R"({"format": 1.0})", "{}"}) {
    const Value document = gdr::json::parse(text, "f.json");
    const std::string error =
        error_of([&] { ObjectReader(Node(document, "f.json")).expect_format(); });
    EXPECT_TRUE(error.starts_with("f.json: at /")) << error;
  }
}

TEST(Json, ZeroHasNoSignAndWritingIsStable) {
  for (const char* text : {"0e0", "-0.0", "-0", "1e20", "12345678901.5", "0.1", "-1e-300"}) {
    const std::string written = gdr::json::dump(gdr::json::parse(text, "test"));
    EXPECT_EQ(gdr::json::dump(gdr::json::parse(written, "test")), written) << text;
  }
  EXPECT_EQ(gdr::json::dump(gdr::json::parse("-0.0", "test")), "0\n");
}

}  // namespace
