// Tests of src/wire/codec.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/codec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace std::string_literals;

namespace {

// A message of one field, whatever its type.
template <class T>
struct Of {
  T value{};
  void fields(auto& a) { a(value); }
};

template <class T>
std::string bytes_of(const T& value) {
  return hv::encode(Of<T>{value});
}

template <class T>
std::optional<T> read_back(std::string_view bytes) {
  Of<T> message;
  if (!hv::decode(bytes, &message)) return std::nullopt;
  return message.value;
}

template <class T>
void check_round_trip(const T& value, const std::string& bytes) {
  CHECK(bytes_of(value) == bytes);
  const auto read = read_back<T>(bytes);
  REQUIRE(read.has_value());
  CHECK(*read == value);
}

enum class Colour : std::uint16_t { kRed = 1, kBlue = 0x0203 };

struct Point {
  std::int32_t x = -1;
  std::string name = "default";
  bool operator==(const Point&) const = default;
  void fields(auto& a) { a(x, name); }
};

struct Everything {
  std::uint8_t first = 9;
  std::string text = "default";
  std::vector<std::uint32_t> numbers{9};
  std::optional<std::int64_t> maybe = 9;
  std::pair<std::string, bool> pair{"default", true};
  std::array<unsigned char, 2> raw{9, 9};
  Colour colour = Colour::kBlue;
  double real = 9;
  void fields(auto& a) { a(first, text, numbers, maybe, pair, raw, colour, real); }
};

}  // namespace

TEST_CASE("numbers are little-endian and reach their limits") {
  check_round_trip<std::uint8_t>(0xff, "\xff");
  check_round_trip<std::uint16_t>(0x0102, "\x02\x01");
  check_round_trip<std::uint32_t>(0x01020304, "\x04\x03\x02\x01");
  check_round_trip<std::uint32_t>(UINT32_MAX, "\xff\xff\xff\xff");
  check_round_trip<std::uint64_t>(0x0102030405060708, "\x08\x07\x06\x05\x04\x03\x02\x01");
  check_round_trip<std::uint64_t>(UINT64_MAX, std::string(8, '\xff'));
  check_round_trip<std::int32_t>(-2, "\xfe\xff\xff\xff");
  check_round_trip<std::int32_t>(INT32_MIN, "\0\0\0\x80"s);
  check_round_trip<std::int64_t>(INT64_MIN, "\0\0\0\0\0\0\0\x80"s);
  check_round_trip<std::int64_t>(INT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\x7f");
}

TEST_CASE("a double keeps its bits, whatever they are") {
  check_round_trip(1.5, "\0\0\0\0\0\0\xf8\x3f"s);
  for (const double value :
       {0.1, std::numeric_limits<double>::infinity(), 5e-324, std::numeric_limits<double>::max()})
    CHECK(read_back<double>(bytes_of(value)) == value);
  CHECK(std::signbit(*read_back<double>(bytes_of(-0.0))));
  CHECK(std::isnan(*read_back<double>(bytes_of(std::nan("")))));
}

TEST_CASE("a bool is one byte, 0 or 1, and nothing else") {
  check_round_trip(false, "\0"s);
  check_round_trip(true, "\x01");
  for (int byte = 2; byte < 256; ++byte)
    CHECK_FALSE(read_back<bool>(std::string(1, static_cast<char>(byte))).has_value());
}

TEST_CASE("an enum is its number, and an unknown one is left to the receiver") {
  check_round_trip(Colour::kBlue, "\x03\x02");
  CHECK(read_back<Colour>("\xff\xff") == static_cast<Colour>(0xffff));
  CHECK_FALSE(read_back<Colour>("\x03").has_value());
}

TEST_CASE("a text is its length and its bytes, whatever they are") {
  check_round_trip(""s, "\0\0\0\0"s);
  check_round_trip("a\0\xff\n"s, "\4\0\0\0a\0\xff\n"s);
  const std::string large(70000, 'x');
  CHECK(read_back<std::string>(bytes_of(large)) == large);
}

TEST_CASE("an array of bytes has no length before it") {
  check_round_trip(std::array<unsigned char, 3>{1, 0, 255}, "\1\0\xff"s);
  CHECK_FALSE(read_back<std::array<unsigned char, 3>>("\1\2").has_value());
}

TEST_CASE("lists, pairs, options and messages nest") {
  check_round_trip(std::vector<std::string>{}, "\0\0\0\0"s);
  check_round_trip(std::vector<std::string>{"a", ""}, "\2\0\0\0\1\0\0\0a\0\0\0\0"s);
  check_round_trip(std::pair<std::uint8_t, bool>{7, true}, "\7\1");
  check_round_trip(std::optional<std::uint8_t>{}, "\0"s);
  check_round_trip(std::optional<std::uint8_t>{7}, "\1\7");
  check_round_trip(Point{1, "p"}, "\1\0\0\0\1\0\0\0p"s);
  check_round_trip(std::vector<Point>{{1, "p"}}, "\1\0\0\0\1\0\0\0\1\0\0\0p"s);
  check_round_trip(std::vector<std::vector<std::uint8_t>>{{1}, {}, {2, 3}},
                   "\3\0\0\0\1\0\0\0\1\0\0\0\0\2\0\0\0\2\3"s);
}

TEST_CASE("an option is there or not there, not something between") {
  CHECK_FALSE(read_back<std::optional<std::uint8_t>>("\2\7").has_value());
  CHECK_FALSE(read_back<std::optional<std::uint8_t>>("\1").has_value());
  CHECK_FALSE(read_back<std::optional<std::uint8_t>>("\0\7"s).has_value());
}

TEST_CASE("a value that held something before holds what was read, no more") {
  Of<std::vector<std::uint8_t>> list{{1, 2, 3}};
  REQUIRE(hv::decode("\1\0\0\0\7"s, &list));
  CHECK(list.value == std::vector<std::uint8_t>{7});
  Of<std::optional<std::uint8_t>> option{9};
  REQUIRE(hv::decode("\0"s, &option));
  CHECK_FALSE(option.value.has_value());
  Of<std::string> text{"before"};
  REQUIRE(hv::decode("\0\0\0\0"s, &text));
  CHECK(text.value.empty());
}

TEST_CASE("a length may take all the bytes that are left and not one more") {
  CHECK(read_back<std::string>("\3\0\0\0abc"s) == "abc");
  CHECK_FALSE(read_back<std::string>("\4\0\0\0abc"s).has_value());
  CHECK_FALSE(read_back<std::string>("\xff\xff\xff\xff"s + "abc").has_value());
  CHECK(read_back<std::vector<std::uint8_t>>("\3\0\0\0abc"s).has_value());
  CHECK_FALSE(read_back<std::vector<std::uint8_t>>("\4\0\0\0abc"s).has_value());
}

TEST_CASE("a list that ends early stops there and makes no room for the rest") {
  Of<std::vector<std::uint64_t>> list;
  // 100 elements fit the bytes that are left if each had one; there are 12 and a half.
  CHECK_FALSE(hv::decode("\x64\0\0\0"s + std::string(100, 'x'), &list));
  CHECK(list.value.size() <= 13);
  CHECK_FALSE(hv::decode("\xff\xff\xff\x7f"s + std::string(100, 'x'), &list));
  CHECK(list.value.empty());
}

TEST_CASE("a message takes no more memory than its limit, however short its elements are") {
  using Texts = std::vector<std::string>;
  const std::size_t most = (64 << 20) / sizeof(std::string);
  CHECK(read_back<Texts>(bytes_of(Texts(most))).has_value());
  CHECK_FALSE(read_back<Texts>(bytes_of(Texts(most + 1))).has_value());
  // All lists of a message together.
  CHECK_FALSE(read_back<std::pair<Texts, Texts>>(bytes_of(std::pair(Texts(most), Texts(1)))));
}

TEST_CASE("after bad input every later field is empty, never what lies behind the damage") {
  Everything message;
  const std::string too_long = "\5"s + "\xff\xff\xff\x0f"s + std::string(60, '\1');
  CHECK_FALSE(hv::decode(too_long, &message));
  CHECK(message.first == 5);
  CHECK(message.text.empty());
  CHECK(message.numbers.empty());
  CHECK_FALSE(message.maybe.has_value());
  CHECK(message.pair == std::pair<std::string, bool>{"", false});
  CHECK(message.raw == std::array<unsigned char, 2>{});
  CHECK(message.colour == Colour{});
  CHECK(message.real == 0);
}

TEST_CASE("a message cut short anywhere is refused, and so is a byte too many") {
  const std::string bytes = hv::encode(Everything{});
  Everything message;
  CHECK(hv::decode(bytes, &message));
  CHECK(hv::encode(message) == bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(hv::decode(std::string_view(bytes).substr(0, size), &message));
  }
  CHECK_FALSE(hv::decode(bytes + "\0"s, &message));
}

TEST_CASE("a reader is ok until something is missing, and complete when nothing is left") {
  hv::Reader reader("\1\2\3");
  std::uint8_t one = 0;
  std::uint32_t four = 7;
  CHECK(reader.ok());
  CHECK_FALSE(reader.complete());
  reader(one);
  CHECK(one == 1);
  reader(four);
  CHECK_FALSE(reader.ok());
  CHECK(four == 0);
  reader(one);  // two bytes are left, but nothing is read after a failure
  CHECK(one == 0);
  CHECK_FALSE(reader.complete());
  CHECK(hv::Reader("").complete());
}
