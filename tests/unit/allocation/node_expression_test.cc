// Tests of Slurm's node expressions.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/node_expression.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "src/base/text.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv::launcher;
using hv::tests::message_of;

namespace {

std::string expanded(const std::string& text, std::size_t most = 1000) {
  const Place place{"-H", 0, text};
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = find_comma(text, begin, text.size());
    for (const std::string& name : expand_name(place, begin, end, most)) all.push_back(name);
    begin = end + 1;
  }
  return hv::join(all, " ");
}

}  // namespace

TEST_CASE("brackets stand for names: ranges, lists, words, several of them, and padding is kept") {
  struct Case {
    const char* text;
    const char* names;
  };
  for (const Case& c : {
           Case{"node1", "node1"},
           Case{"n[1-3]", "n1 n2 n3"},
           Case{"n[01-03,20]", "n01 n02 n03 n20"},
           Case{"n[8-11]", "n8 n9 n10 n11"},
           Case{"n[08-11]", "n08 n09 n10 n11"},
           Case{"n[099-101]", "n099 n100 n101"},
           Case{"n[98-101]", "n98 n99 n100 n101"},
           Case{"gpu[1-2]x[a]", "gpu1xa gpu2xa"},
           Case{"r[1-2]n[1-2].lab", "r1n1.lab r1n2.lab r2n1.lab r2n2.lab"},
           Case{"n[1-2],gpu[1-2]x[a]", "n1 n2 gpu1xa gpu2xa"},
           Case{"[1-2]", "1 2"},
           Case{"n[7]", "n7"},
           Case{"n[5-5]", "n5"},
           Case{"n[0-1]", "n0 n1"},
           Case{"n[00-01]", "n00 n01"},
           Case{"jean-zay-ia[811-812]", "jean-zay-ia811 jean-zay-ia812"},
       }) {
    CAPTURE(c.text);
    CHECK(expanded(c.text) == c.names);
  }
}

TEST_CASE("what is malformed is refused where it stands") {
  struct Case {
    const char* text;
    const char* where;
  };
  for (const Case& c : {
           Case{"n[1-3", "-H:2: this bracket is not closed"},
           Case{"n1-3]", "-H:5: ']' closes no bracket"},
           Case{"n[]", "-H:3: '' is nothing that a bracket names"},
           Case{"n[1,]", "-H:5: '' is nothing that a bracket names"},
           Case{"n[3-1]", "-H:3: the range 3-1 ends before it begins"},
           Case{"n[a-c]", "-H:3: a range has a number on both sides"},
           Case{"n[1-]", "-H:5: a range has a number on both sides"},
           Case{"n[1--2]", "-H:5: a range has a number on both sides"},
           Case{"n[1-2[3]]", "-H:5: a range has a number on both sides"},
           Case{"n[1:2]", "-H:3: '1:2' is nothing that a bracket names"},
           Case{"n[1-9999999999999999999]", "-H:5: this number has more than 18 digits"},
       }) {
    CAPTURE(c.text);
    CHECK(message_of([&] { expanded(c.text); }).find(c.where) == 0);
  }
}

TEST_CASE("expressions for too many hosts are refused before any name is made") {
  for (const char* text : {"n[1-999999999]", "n[1-100000000000000000]", "n[1-1000]x[1-1000]",
                           "n[1-1000]x[1-1000]y[1-1000]z[1-1000]a[1-1000]b[1-1000]c[1-1000]",
                           "n[0-999999999999999999,0-999999999999999999,0-999999999999999999]"}) {
    CAPTURE(text);
    CHECK(message_of([&] { expanded(text); }).find("stands for too many hosts") !=
          std::string::npos);
  }
  CHECK(message_of([] { expanded("n[1-3]", 2); }).find("too many") != std::string::npos);
  CHECK(expanded("n[1-2]", 2) == "n1 n2");
}

TEST_CASE("names longer than a host's are refused before any is made") {
  const std::string zeros(300, '0');
  CHECK(message_of([&] {
          expanded("n[" + std::string(18, '0') + "-1]x[" + zeros + "]");
        }).find("more than 253 bytes") != std::string::npos);
  CHECK(message_of([] { expanded(std::string(254, 'a')); }).find("more than 253 bytes") !=
        std::string::npos);
  CHECK(expanded(std::string(253, 'a')) == std::string(253, 'a'));
}

TEST_CASE("names are folded to an expression that stands for them") {
  const auto folded = [](const std::vector<std::string>& names) { return fold_names(names); };
  CHECK(folded({}) == "");
  CHECK(folded({"alone"}) == "alone");
  CHECK(folded({"n1"}) == "n1");
  CHECK(folded({"n1", "n2", "n3", "n7"}) == "n[1-3,7]");
  CHECK(folded({"n08", "n09", "n10", "n11"}) == "n[10-11],n[08-09]");
  CHECK(folded({"n0", "n1", "n00"}) == "n[0-1],n00");
  CHECK(folded({"r1i0n1-ib", "r1i0n2-ib", "login", "x12345678901234567890"}) ==
        "r1i0n1-ib,r1i0n2-ib,login,x12345678901234567890");
}

TEST_CASE("any names come back from the expression that they are folded to") {
  std::mt19937 random(7);
  const auto pick = [&random](std::size_t count) { return random() % count; };
  const std::vector<std::string> stems{"n", "gpu-", "r1i0n", "a0b", ""},
      ends{"", "-ib", "x", ".c1"};
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> names;
    for (std::size_t i = 0, count = 1 + pick(40); i < count; ++i) {
      std::string digits = std::to_string(pick(120));
      digits.insert(0, pick(4), '0');
      names.insert(stems[pick(stems.size())] + digits + ends[pick(ends.size())]);
    }
    const std::string text = expanded(fold_names({names.begin(), names.end()}));
    CAPTURE(text);
    const std::vector<std::string> back = hv::split(text, ' ');
    CHECK(std::set<std::string>(back.begin(), back.end()) == names);
    CHECK(back.size() == names.size());
  }
}
