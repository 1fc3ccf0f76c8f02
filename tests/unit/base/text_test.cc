// Tests of src/base/text. SPDX-License-Identifier: Apache-2.0
#include "src/base/text.h"

#include <doctest/doctest.h>

using namespace std::string_literals;

TEST_CASE("parse_integer takes the whole text or nothing") {
  CHECK(hv::parse_integer("42") == 42);
  CHECK(hv::parse_integer("-7") == -7);
  for (const char* bad : {"", " 1", "1 ", "+1", "1x", "0x10", "99999999999999999999", "1.0"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_integer(bad).has_value());
  }
}

TEST_CASE("parse_bytes knows powers of 1024 and refuses overflow") {
  CHECK(hv::parse_bytes("65536") == 65536);
  CHECK(hv::parse_bytes("64K") == 65536);
  CHECK(hv::parse_bytes("64KiB") == 65536);
  CHECK(hv::parse_bytes("1m") == 1048576);
  CHECK(hv::parse_bytes("2G") == 2147483648);
  for (const char* bad : {"", "K", "-1", "1.5M", "1T", "99999999999G", "1 K"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_bytes(bad).has_value());
  }
}

TEST_CASE("parse_seconds knows units and refuses what is no time") {
  CHECK(hv::parse_seconds("60") == 60);
  CHECK(hv::parse_seconds("0.5") == 0.5);
  CHECK(hv::parse_seconds("500ms") == 0.5);
  CHECK(hv::parse_seconds("2m") == 120);
  CHECK(hv::parse_seconds("1h") == 3600);
  for (const char* bad : {"", "s", "-1", "nan", "inf", "1d", "1e400", "10000000000"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_seconds(bad).has_value());
  }
}

TEST_CASE("printable shows control bytes and broken UTF-8 as escapes, and keeps good UTF-8") {
  CHECK(hv::printable("a\nb\x01"s) == "a\\x0ab\\x01");
  CHECK(hv::printable("caf\xc3\xa9"s) == "caf\xc3\xa9");
  CHECK(hv::printable("\xff\xc3"s) == "\\xff\\xc3");
  CHECK(hv::printable("\xed\xa0\x80"s) == "\\xed\\xa0\\x80");  // a surrogate is no UTF-8
  CHECK(hv::printable(std::string(300, 'x'), 10) == "xxxxxxxxxx...");
}

TEST_CASE("shell_quote makes one word of anything") {
  CHECK(hv::shell_quote("plain-word_1.2/x") == "plain-word_1.2/x");
  CHECK(hv::shell_quote("") == "''");
  CHECK(hv::shell_quote("it's") == "'it'\\''s'");
  CHECK(hv::shell_quote("a b$c") == "'a b$c'");
}

TEST_CASE("nearest proposes a near name and stays silent for a far one") {
  const std::vector<std::string> names{"--np", "--pty", "--verbose", "--hostfile"};
  CHECK(hv::nearest("--nmu", names) == "--np");
  CHECK(hv::nearest("--verbos", names) == "--verbose");
  CHECK(hv::nearest("--hostfil", names) == "--hostfile");
  CHECK_FALSE(hv::nearest("--completely-different", names).has_value());
}

TEST_CASE("format_ranges folds runs") {
  CHECK(hv::format_ranges({}) == "");
  CHECK(hv::format_ranges({4}) == "4");
  CHECK(hv::format_ranges({0, 1, 2, 3, 7, 9, 10}) == "0-3,7,9-10");
}

TEST_CASE("format_bytes picks the unit a reader expects") {
  CHECK(hv::format_bytes(0) == "0 B");
  CHECK(hv::format_bytes(1536) == "1.5 KiB");
  CHECK(hv::format_bytes(64u << 20) == "64 MiB");
}

TEST_CASE("split keeps empty pieces and join puts them back") {
  CHECK(hv::split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(hv::split("", ',') == std::vector<std::string>{""});
  CHECK(hv::join(hv::split("x:y::z", ':'), ":") == "x:y::z");
  CHECK(hv::trim("  a b\r\n") == "a b");
}
