// Tests of launcher/record/bounded_json: what nlohmann reads is read the same, what is too much is
// refused by name, and the time grows as the text does.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/bounded_json.h"

#include <doctest/doctest.h>

#include <ctime>
#include <nlohmann/json.hpp>

using namespace hv::launcher;

namespace {

constexpr JsonLimits kLimits{.bytes = 16 << 20, .depth = 4, .members = 3, .values = 2'000'000};

std::string why_refused(const std::string& text) {
  const auto read = parse_bounded(text, kLimits);
  const auto* problem = std::get_if<RecordProblem>(&read);
  return problem ? problem->what : "";
}

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double seconds_to_read(const std::string& piece, std::size_t count) {
  std::string text = "[0";
  for (std::size_t i = 0; i < count; ++i) text += "," + piece;
  text += "]";
  const double begun = processor_seconds();
  const auto read = parse_bounded(text, kLimits);
  CHECK(std::get<nlohmann::json>(read).size() == count + 1);
  return processor_seconds() - begun;
}

}  // namespace

TEST_CASE("a text within the limits is read as nlohmann reads it") {
  for (const char* const text :
       {"null", " 7 ", "\"a\\u00e9\\n\"", "[]", "{}", "[1,-2,3.5,true,[[]],{\"a\":[null,{}]}]",
        "{\"a\":{\"b\":[1,2]},\"c\":\"d\",\"b\":18446744073709551615}",
        "{\"a\":[1,[2]],\"a\":{\"b\":3}}", "[{\"a\":1,\"a\":2},{\"a\":3}]"}) {
    const auto read = parse_bounded(text, kLimits);
    INFO(text);
    REQUIRE(std::holds_alternative<nlohmann::json>(read));
    CHECK(std::get<nlohmann::json>(read) == nlohmann::json::parse(text));
  }
}

TEST_CASE("what is no JSON is refused") {
  for (const char* const text : {"", "{", "[1", "[1,]", "[1] 2", "{\"a\" 1}", "\"\xff\"", "[1}"})
    CHECK(why_refused(text) == "it is no JSON, or was cut off");
}

TEST_CASE("a text beyond a limit is refused with the limit") {
  CHECK(why_refused("[[[[]]]]") == "");
  CHECK(why_refused("[[[[[]]]]]") == "it is nested deeper than 4 levels");
  CHECK(why_refused("[{\"a\":[{\"b\":[") == "it is nested deeper than 4 levels");
  CHECK(why_refused("{\"a\":1,\"b\":2,\"c\":3}") == "");
  CHECK(why_refused("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}") ==
        "it has an object of more than 3 members");
  // A name that stands again replaces a value, and its reading takes time all the same.
  CHECK(why_refused("[{\"a\":1,\"a\":1,\"a\":1,\"a\":1}]") ==
        "it has an object of more than 3 members");
  CHECK(why_refused(std::string(17 << 20, ' ')) == "it is larger than 16 MiB");
  std::string values = "[";
  for (int i = 0; i < 2'000'000; ++i) values += "0,";
  CHECK(why_refused(values) == "it has more than 2000000 values");
}

// Where the time grows as the square, 16 times as much takes 256 times as long.
TEST_CASE("16 times as many values take about 16 times as long to read") {
  for (const char* const piece : {"{}", "[]", "{\"a\":[{}]}"}) {
    seconds_to_read(piece, 20'000);  // memory is there then
    const double few = seconds_to_read(piece, 20'000), many = seconds_to_read(piece, 320'000);
    INFO(std::string(piece), ": ", few, " s and ", many, " s");
    CHECK(many < 100 * few);
  }
}
