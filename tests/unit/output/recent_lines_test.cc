// A rank's last lines, for the words about its failure; and the folding of equal words.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/recent_lines.h"

#include <doctest/doctest.h>

#include "launcher/output/gather.h"
#include "src/base/text.h"

using hv::ranges_of;
using hv::launcher::gather;
using hv::launcher::kRecentBytes;
using hv::launcher::kRecentLines;
using hv::launcher::RecentLines;
using Lines = std::vector<std::string>;

TEST_CASE(
    "recent lines are those of standard error, and of standard output where that said nothing") {
  RecentLines recent;
  recent.add(1, "out 1\nhalf");
  CHECK(recent.lines() == Lines{"out 1", "half"});
  recent.add(2, "err 1\n");
  recent.add(1, " line\nlast");
  recent.add(2, "err 2");
  CHECK(recent.lines() == Lines{"err 1", "err 2"});
}

TEST_CASE("a rank that wrote nothing has no recent lines") {
  RecentLines recent;
  recent.add(1, "");
  CHECK(recent.lines().empty());
}

TEST_CASE("recent lines are the last fifty, without carriage returns at their ends") {
  RecentLines recent;
  for (int i = 0; i < 100; ++i) recent.add(1, std::to_string(i) + "\r\n");
  const Lines lines = recent.lines();
  CHECK(lines.size() == kRecentLines);
  CHECK(lines.front() == "50");
  CHECK(lines.back() == "99");
}

TEST_CASE("of a long line the end is kept, marked as cut") {
  RecentLines recent;
  recent.add(2, "kept out\n" + std::string(3 * kRecentBytes, 'x') + "end\n");
  const Lines lines = recent.lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("\u2026xxx"));
  CHECK(lines[0].ends_with("xend"));
  CHECK(lines[0].size() <= kRecentBytes + 3);
}

TEST_CASE("recent lines are not marked as cut where what was forgotten ended in a newline") {
  RecentLines recent;
  const std::string line(kRecentBytes / 8 - 1, 'x');
  for (int i = 0; i < 20; ++i) recent.add(1, line + "\n");
  CHECK(recent.lines() == Lines(8, line));
  recent.add(2, "before\n" + std::string(kRecentBytes, 'y'));
  CHECK(recent.lines() == Lines{std::string(kRecentBytes, 'y')});
}

TEST_CASE("recent lines are the same in whatever pieces they come") {
  std::string all;
  for (int i = 0; i < 4000; ++i)
    all += std::string(static_cast<std::size_t>(i * 37 % 900), 'a' + i % 26) + "\n";
  RecentLines whole;
  whole.add(2, all.substr(all.size() - kRecentBytes - 1));
  for (const std::size_t piece : {1u, 700u, 5000u, 16384u, 16385u, 100000u}) {
    CAPTURE(piece);
    RecentLines recent;
    for (std::size_t at = 0; at < all.size(); at += piece) recent.add(2, all.substr(at, piece));
    CHECK(recent.lines() == whole.lines());
  }
}

TEST_CASE("recent bytes stay bounded over many small and large pieces") {
  RecentLines recent;
  for (int i = 0; i < 1000; ++i)
    recent.add(1 + i % 2, std::string(static_cast<std::size_t>(i * 7 % 5000), 'z'));
  std::size_t bytes = 0;
  for (const std::string& line : recent.lines()) bytes += line.size();
  CHECK(bytes <= kRecentBytes + 3);
  CHECK(bytes >= kRecentBytes / 2);
}

TEST_CASE("equal texts of several ranks become one group, in the order of their first ranks") {
  const auto groups = gather({{3, {"a"}}, {0, {"b", "c"}}, {1, {"a"}}, {2, {"b", "c"}}, {4, {}}});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].ranks == std::vector<int>{0, 2});
  CHECK(groups[0].lines == Lines{"b", "c"});
  CHECK(groups[1].ranks == std::vector<int>{1, 3});
  CHECK(ranges_of("rank", groups[1].ranks) == "ranks 1,3");
  CHECK(ranges_of("rank", {7}) == "rank 7");
  CHECK(gather({}).empty());
}
