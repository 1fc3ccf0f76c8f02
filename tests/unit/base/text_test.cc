// Tests of src/base/text.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/text.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>

using namespace std::string_literals;

namespace {

std::string output_of_shell(const std::string& script) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(script.c_str(), "r"), &::pclose);
  REQUIRE(pipe != nullptr);
  std::string result;
  char buffer[1024];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe.get())) > 0;)
    result.append(buffer, got);
  return result;
}

}  // namespace

TEST_CASE("parse_integer takes the whole text or nothing") {
  CHECK(hv::parse_integer("42") == 42);
  CHECK(hv::parse_integer("-7") == -7);
  CHECK(hv::parse_integer("007") == 7);
  CHECK(hv::parse_integer("-0") == 0);
  for (const std::string& bad : {""s, " 1"s, "1 "s, "+1"s, "1x"s, "0x10"s, "1.0"s, "-"s, "--1"s,
                                 "1e3"s, "1\0"s, "1\n"s, "\xd9\xa3"s}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_integer(bad).has_value());
  }
}

TEST_CASE("parse_integer reaches both limits and stops beyond them") {
  CHECK(hv::parse_integer("9223372036854775807") == INT64_MAX);
  CHECK(hv::parse_integer("-9223372036854775808") == INT64_MIN);
  for (const char* bad : {"9223372036854775808", "-9223372036854775809", "99999999999999999999",
                          "18446744073709551617"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_integer(bad).has_value());
  }
}

TEST_CASE("parse_bytes knows powers of 1024 in every spelling") {
  const std::pair<const char*, std::int64_t> cases[] = {{"0", 0},
                                                        {"65536", 65536},
                                                        {"1b", 1},
                                                        {"64K", 65536},
                                                        {"64kb", 65536},
                                                        {"64KiB", 65536},
                                                        {"1m", 1 << 20},
                                                        {"1MB", 1 << 20},
                                                        {"1mib", 1 << 20},
                                                        {"2G", 2147483648},
                                                        {"2gb", 2147483648},
                                                        {"2GIB", 2147483648},
                                                        {"0G", 0},
                                                        {"8381903171G", 8381903171 << 30}};
  for (const auto& [written, meant] : cases) {
    CAPTURE(written);
    CHECK(hv::parse_bytes(written) == meant);
  }
}

TEST_CASE("parse_bytes refuses overflow, fractions, signs and unknown units") {
  for (const char* bad : {"",
                          "K",
                          "-1",
                          "-0",
                          "+1",
                          "1.5M",
                          ".5K",
                          "1T",
                          "1kk",
                          "1bk",
                          "K1",
                          "1K1",
                          "1 K",
                          " 64K",
                          "64K ",
                          "0x10",
                          "1e3",
                          "99999999999G",
                          "8589934592G",
                          "9223372036854775807K",
                          "9223372036854775808"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_bytes(bad).has_value());
  }
}

TEST_CASE("parse_seconds knows units") {
  const std::pair<const char*, double> cases[] = {
      {"60", 60},  {"0.5", 0.5},  {".5", 0.5},  {"60s", 60},    {"500ms", 0.5},      {"500MS", 0.5},
      {"2m", 120}, {"2min", 120}, {"1h", 3600}, {"0.5h", 1800}, {"1000000000", 1e9}, {"0ms", 0}};
  for (const auto& [written, meant_s] : cases) {
    CAPTURE(written);
    REQUIRE(hv::parse_seconds(written).has_value());
    CHECK(*hv::parse_seconds(written) == doctest::Approx(meant_s));
  }
}

TEST_CASE("parse_seconds refuses what is no time, or one beyond what nanoseconds can count") {
  for (const char* bad : {"", "s", ".", "-1", "-0", "+1", "nan", "inf", "1d", "1us", "1 s", "1e400",
                          "1e3", "1.2.3", "1s1", "10000000000", "1000000001", "277778h"}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_seconds(bad).has_value());
  }
}

TEST_CASE("parse_number takes finite decimals only") {
  CHECK(hv::parse_number("-1.5") == -1.5);
  CHECK(hv::parse_number("0.1") == 0.1);
  CHECK(hv::parse_number("3") == 3);
  for (const std::string& bad : {""s, "."s, "-"s, "+1"s, "1e5"s, "0x1p3"s, "nan"s, "inf"s, "-inf"s,
                                 "infinity"s, "1,5"s, " 1"s, "1 "s, std::string(400, '9')}) {
    CAPTURE(bad);
    CHECK_FALSE(hv::parse_number(bad).has_value());
  }
}

TEST_CASE("errno_text is the system's reason, also for a number that has none") {
  CHECK(hv::errno_text(ENOENT) == "No such file or directory");
  CHECK(hv::errno_text(ECONNREFUSED) == "Connection refused");
  CHECK(hv::errno_text(99999) == "Unknown error 99999");
}

TEST_CASE("printable shows control bytes as escapes") {
  CHECK(hv::printable("a\nb\x01"s) == "a\\x0ab\\x01");
  CHECK(hv::printable("\x1b[31m\x7f\0"s) == "\\x1b[31m\\x7f\\x00");
  CHECK(hv::printable(" ~\\'\"") == " ~\\'\"");
  CHECK(hv::printable("").empty());
}

TEST_CASE("printable escapes the control characters of two bytes, which move terminals, too") {
  CHECK(hv::printable("\xc2\x9b") == "\\xc2\\x9b");  // CSI
  CHECK(hv::printable("\xc2\x80x\xc2\x9f") == "\\xc2\\x80x\\xc2\\x9f");
  CHECK(hv::printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("printable keeps good UTF-8 up to the edges of RFC 3629") {
  for (const char* good :
       {"caf\xc3\xa9", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(good);
    CHECK(hv::printable(good) == good);
  }
}

TEST_CASE("printable shows every byte of what is no UTF-8") {
  const std::pair<const char*, const char*> cases[] = {
      {"\xff\xc3", "\\xff\\xc3"},
      {"\x80", "\\x80"},             // a continuation of nothing
      {"\xe2\x82", "\\xe2\\x82"},    // cut short
      {"\xe2\x82x", "\\xe2\\x82x"},  // cut by another character
      {"\xc0\x80", "\\xc0\\x80"},    // overlong forms
      {"\xc1\xbf", "\\xc1\\xbf"},
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},
      {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond U+10FFFF
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
  };
  for (const auto& [text, shown] : cases) {
    CAPTURE(shown);
    CHECK(hv::printable(text) == shown);
  }
}

TEST_CASE("printable keeps within its limit and never cuts a character or an escape") {
  const std::string euro = "\xe2\x82\xac";
  CHECK(hv::printable(std::string(300, 'x'), 10) == "xxxxxxxxxx...");
  CHECK(hv::printable(std::string(10, 'x'), 10) == "xxxxxxxxxx");
  CHECK(hv::printable("a" + euro, 4) == "a" + euro);
  CHECK(hv::printable("a" + euro, 3) == "a...");
  CHECK(hv::printable("a\x01", 5) == "a\\x01");
  CHECK(hv::printable("a\x01", 4) == "a...");
  CHECK(hv::printable("x", 0) == "...");
  CHECK(hv::printable("", 0).empty());
  CHECK(hv::printable(std::string(201, 'x')) == std::string(200, 'x') + "...");
}

TEST_CASE("printable_lines escapes all but the ends of lines, and escapes nothing twice") {
  const std::string shown = hv::printable_lines("a\x1b[2J\r\n\xc2\x9b\xff\n\nb\t"s);
  CHECK(shown == "a\\x1b[2J\\x0d\n\\xc2\\x9b\\xff\n\nb\\x09");
  CHECK(hv::printable_lines(shown) == shown);
  CHECK(hv::printable_lines("") == "");
  CHECK(hv::printable_lines("caf\xc3\xa9\n") == "caf\xc3\xa9\n");
  CHECK(hv::printable_lines(std::string(100'000, 'x')) == std::string(100'000, 'x'));
}

TEST_CASE("shell_words reads quotes and backslashes as a shell does") {
  using Words = std::vector<std::string>;
  CHECK(*hv::shell_words("") == Words{});
  CHECK(*hv::shell_words(" ssh  -J\tgate\n") == Words{"ssh", "-J", "gate"});
  CHECK(*hv::shell_words("--mca 'a b' \"c 'd'\" e\\ f ''") ==
        Words{"--mca", "a b", "c 'd'", "e f", ""});
  CHECK(*hv::shell_words("a'b'c") == Words{"abc"});
  CHECK(!hv::shell_words("'open"));
}

TEST_CASE("shell_quote leaves plain words and quotes the rest") {
  CHECK(hv::shell_quote("plain-word_1.2/x") == "plain-word_1.2/x");
  CHECK(hv::shell_quote("user@host:%h,+1=2") == "user@host:%h,+1=2");
  CHECK(hv::shell_quote("") == "''");
  CHECK(hv::shell_quote("it's") == "'it'\\''s'");
  CHECK(hv::shell_quote("a b$c") == "'a b$c'");
  CHECK(hv::shell_quote("~") == "'~'");
}

TEST_CASE("a real shell reads a quoted word back byte for byte") {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& word : {all, "'"s, "''a''"s, "\\'"s, "$(exit 1)`exit 2`"s, "-n"s, "*"s,
                                  "~"s, "#"s, "!x"s, "{a,b}"s, "a\n"s, ""s}) {
    CAPTURE(word);
    CHECK(output_of_shell("printf '%s|' " + hv::shell_quote(word)) == word + "|");
  }
}

TEST_CASE("hex shows each byte as two small digits") {
  CHECK(hv::hex("", 0).empty());
  CHECK(hv::hex("\x00\x0f\xf0\xff\x80\x7f", 6) == "000ff0ff807f");
}

TEST_CASE("nearest proposes a near name and stays silent for a far one") {
  const std::vector<std::string> names{"--np", "--pty", "--verbose", "--hostfile"};
  CHECK(hv::nearest("--nmu", names) == "--np");
  CHECK(hv::nearest("--verbos", names) == "--verbose");
  CHECK(hv::nearest("--hostfil", names) == "--hostfile");
  CHECK_FALSE(hv::nearest("--completely-different", names).has_value());
  CHECK_FALSE(hv::nearest("--np", {}).has_value());
}

TEST_CASE("nearest counts insertions, deletions and replacements, and allows a third of the word") {
  CHECK(hv::nearest("abcdef", {"abXdeY"}) == "abXdeY");
  CHECK_FALSE(hv::nearest("abcdef", {"abXYeZ"}).has_value());
  CHECK(hv::nearest("abcdefghi", {"defghi"}) == "defghi");
  CHECK(hv::nearest("abcdefghi", {"abcdefghixyz"}) == "abcdefghixyz");
  CHECK_FALSE(hv::nearest("abcdefghi", {"abcdefghiwxyz"}).has_value());
  CHECK(hv::nearest("abc", {"abX"}) == "abX");
  CHECK_FALSE(hv::nearest("abc", {"aXY"}).has_value());
}

TEST_CASE("nearest counts two neighbours that have changed places once") {
  CHECK(hv::nearest("evn", {"env"}) == "env");
  CHECK(hv::nearest("abcdef", {"badcef"}) == "badcef");
  CHECK_FALSE(hv::nearest("abcdef", {"badcfe"}).has_value());
  CHECK_FALSE(hv::nearest("abc", {"cba"}).has_value());
}

TEST_CASE("nearest takes the nearest, and the first of equally near ones") {
  CHECK(hv::nearest("hosts", {"hosXX", "host", "posts"}) == "host");
  CHECK(hv::nearest("hosts", {"hosXX", "hosts", "host"}) == "hosts");
}

TEST_CASE("format_ranges folds runs") {
  CHECK(hv::format_ranges({}) == "");
  CHECK(hv::format_ranges({4}) == "4");
  CHECK(hv::format_ranges({0, 1}) == "0-1");
  CHECK(hv::format_ranges({0, 2, 4}) == "0,2,4");
  CHECK(hv::format_ranges({0, 1, 2, 3, 7, 9, 10}) == "0-3,7,9-10");
  CHECK(hv::format_ranges({INT_MAX - 1, INT_MAX}) == "2147483646-2147483647");
}

TEST_CASE("a word is in the plural for every count but 1") {
  CHECK(hv::count_of(0, "rank") == "0 ranks");
  CHECK(hv::count_of(1, "rank") == "1 rank");
  CHECK(hv::count_of(2, "rank") == "2 ranks");
  CHECK(hv::count_of(1, "entry", "entries") == "1 entry");
  CHECK(hv::count_of(2, "entry", "entries") == "2 entries");
  CHECK(hv::word_for(1, "has", "have") == "has");
  CHECK(hv::word_for(2, "has", "have") == "have");
  CHECK(hv::ranges_of("rank", {3}) == "rank 3");
  CHECK(hv::ranges_of("rank", {0, 1, 2, 7}) == "ranks 0-2,7");
}

TEST_CASE("format_bytes picks the unit a reader expects") {
  const std::pair<std::uint64_t, const char*> cases[] = {{0, "0 B"},
                                                         {1, "1 B"},
                                                         {1023, "1023 B"},
                                                         {1024, "1 KiB"},
                                                         {1536, "1.5 KiB"},
                                                         {10 * 1024 + 103, "10.1 KiB"},
                                                         {64u << 20, "64 MiB"},
                                                         {3ull << 40, "3 TiB"},
                                                         {5ull << 50, "5 PiB"},
                                                         {UINT64_MAX, "16 EiB"}};
  for (const auto& [bytes, shown] : cases) CHECK(hv::format_bytes(bytes) == shown);
}

TEST_CASE("format_bytes never rounds up to 1024 of a unit") {
  CHECK(hv::format_bytes((1u << 20) - 1) == "1.0 MiB");
  CHECK(hv::format_bytes((1ull << 30) - 1) == "1.0 GiB");
  CHECK(hv::format_bytes((1u << 20) - 103) == "1023.9 KiB");
}

TEST_CASE("split keeps empty pieces and join puts them back") {
  using Pieces = std::vector<std::string>;
  CHECK(hv::split("a,,b", ',') == Pieces{"a", "", "b"});
  CHECK(hv::split("", ',') == Pieces{""});
  CHECK(hv::split(",", ',') == Pieces{"", ""});
  CHECK(hv::split("a,", ',') == Pieces{"a", ""});
  CHECK(hv::split("a b", ',') == Pieces{"a b"});
  CHECK(hv::join(hv::split("x:y::z", ':'), ":") == "x:y::z");
  CHECK(hv::join({}, ",").empty());
  CHECK(hv::join({"a"}, ",") == "a");
  CHECK(hv::join({"a", "b"}, " and ") == "a and b");
}

TEST_CASE("trim takes blanks from both ends only") {
  CHECK(hv::trim("  a b\r\n") == "a b");
  CHECK(hv::trim("\t\na\t") == "a");
  CHECK(hv::trim(" \t\r\n").empty());
  CHECK(hv::trim("").empty());
  CHECK(hv::trim("\xc2\xa0x") == "\xc2\xa0x");
}

TEST_CASE("lower changes ASCII letters and nothing else") {
  CHECK(hv::lower("AZaz09[@`{") == "azaz09[@`{");
  CHECK(hv::lower("\xc3\x84\xff") == "\xc3\x84\xff");
  CHECK(hv::lower("").empty());
}
