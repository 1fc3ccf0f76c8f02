// Columns of a terminal that a text fills.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/columns.h"

#include <doctest/doctest.h>

#include <string>

using hv::launcher::clip_to_columns;
using hv::launcher::columns_of;

TEST_CASE("columns are counted by character, not by byte") {
  CHECK(columns_of("") == 0);
  CHECK(columns_of("abc") == 3);
  CHECK(columns_of("é…█") == 3);
  CHECK(columns_of("日本") == 4);
  CHECK(columns_of("🚀") == 2);
}

TEST_CASE("escape sequences fill no column") {
  CHECK(columns_of("\x1b[31;1mred\x1b[0m") == 3);
  CHECK(columns_of("\x1b[31") == 0);
  CHECK(columns_of("\x1b") == 0);
  CHECK(columns_of("\x1b"
                   "cab") == 2);
}

TEST_CASE("bytes that are no UTF-8 fill a column each") {
  CHECK(columns_of("\xff\xfe") == 2);
  CHECK(columns_of("\xe2\x80") == 2);
  CHECK(columns_of("\xe2zz") == 3);
}

TEST_CASE("clipping never cuts a character or an escape sequence") {
  CHECK(clip_to_columns("abc", 2) == "ab");
  CHECK(clip_to_columns("é…x", 2) == "é…");
  CHECK(clip_to_columns("日本", 3) == "日");
  CHECK(clip_to_columns("\x1b[31mab", 1) == "\x1b[31ma");
  CHECK(clip_to_columns("abc", 0) == "");
  CHECK(clip_to_columns("abc", 9) == "abc");
}
