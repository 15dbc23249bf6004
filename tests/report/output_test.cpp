// Tables, lines and quotation, which all reports use.
#include "src/report/output.hpp"

#include <gtest/gtest.h>

namespace gdr::report {
namespace {

const std::vector<std::vector<std::string>> rows{{"", "first", "2"}, {"name", "1", "second"}};

TEST(Table, FirstColumnLeftTheOthersRight) {
  EXPECT_EQ(table(rows), "      first       2\nname      1  second\n");
}

TEST(Table, LeftThroughoutWithAnIndent) {
  EXPECT_EQ(table(rows, {false, 2, 0}), "        first  2\n  name  1      second\n");
}

TEST(Table, WhatDoesNotFitFollowsWithTheFirstColumn) {
  // "name" and "first" take 4 + 2 + 5 characters, the last column 2 + 6 more.
  EXPECT_EQ(table(rows, {true, 0, 19}), table(rows));
  EXPECT_EQ(table(rows, {true, 0, 18}), "      first\nname      1\n\n           2\nname  second\n");
  EXPECT_EQ(table(rows, {true, 0, 1}), table(rows, {true, 0, 18})) << "one column at least";
}

TEST(Table, NoRowsNoText) { EXPECT_EQ(table({}), ""); }

TEST(Lines, BreakAtTheWidth) {
  EXPECT_EQ(wrapped("aa bb cc", 1, 5), "aa bb\n cc");
  EXPECT_EQ(wrapped("aa bb cc", 1, 4), "aa\n bb\n cc");
  const std::string words = std::string(38, 'a') + " " + std::string(39, 'b');
  EXPECT_EQ(paragraph(words, 2), "  " + words + "\n") << "80 characters";
  EXPECT_EQ(paragraph(words + "b", 2),
            "  " + std::string(38, 'a') + "\n  " + std::string(40, 'b') + "\n");
  EXPECT_EQ(paragraph(std::string(90, 'c') + " d", 4), "    " + std::string(90, 'c') + "\n    d\n")
      << "a word longer than a line stands alone";
}

TEST(Csv, QuotationMarksAreDoubled) { EXPECT_EQ(csv_quoted("a \"b\", c"), "\"a \"\"b\"\", c\""); }

}  // namespace
}  // namespace gdr::report
