// SPDX-License-Identifier: Apache-2.0
#include "launcher/picture/report_html.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/check/made_up_topology.h"

namespace hv::launcher {
namespace {

using made_up::check_of;
using made_up::Links;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

bool has(const std::string& text, const std::string& part) { return count(text, part) > 0; }

TEST_CASE("a page has every finding with why and fix, and what was not looked at") {
  const CheckInput input = check_of("n[1-2]:4");
  CheckReport report;
  report.findings = {
      {"reach", "no-answer", Severity::kCannotStart, {"n2"}, "a fact", "a reason", "ssh n2 true"}};
  report.not_probed = {{"limits", {"n1"}, "it was late"}};
  const std::string page = report_as_html(input, report);
  CHECK(has(page,
            "<td class=\"worst\">cannot start</td><td>n2</td><td>a fact</td>"
            "<td>a reason</td><td><code>ssh n2 true</code><br/>[no-answer]</td>"));
  CHECK(has(page, "<td>limits</td><td>n1</td><td>it was late</td>"));
  CHECK(has(page, "The job could not start. <a href=\"#findings\">1 finding</a>"));
  CHECK(has(page, "<h1>8 ranks on 2 hosts, each runs: ./train</h1>"));
  CHECK(has(report_as_html(input, {}), "Nothing was found."));
}

TEST_CASE("a page names the colours of its paths, has their numbers, and finds every slow one") {
  CheckInput input = check_of("n[1-2]:4");
  made_up::add_pairs(&input);
  const auto page_at = [&input](double megabytes_per_s) {
    for (PairFacts& pair : input.pairs)
      if (pair.measure) pair.measure->megabytes_per_s = megabytes_per_s;
    return report_as_html(input, judge(input, {"ways"}), "hvrun 7.1, 2026-12-01 09:30 UTC");
  };
  const std::string fast = page_at(60), slow = page_at(40);
  CHECK(has(fast, "<td>60 MB/s</td><td>orange</td><td>13 us</td>"));
  CHECK(has(fast, "Nothing was found."));
  CHECK(has(slow, "<td>40 MB/s</td><td>red</td><td>13 us</td>"));
  CHECK(has(slow, "[slow-way]"));
  for (const char* entry : {"light blue: 10 GB/s and more", "orange: from 50 MB/s",
                            "red: slow: less than 50 MB/s", "grey: a core"})
    CHECK(has(slow, entry));
  CHECK(has(slow, "<p>hvrun 7.1, 2026-12-01 09:30 UTC</p>"));
  CHECK(has(report_as_svg(input, "hvrun 7.1, today"), ">hvrun 7.1, today</text>"));
}

TEST_CASE("a page asks for nothing from elsewhere") {
  const std::string page = report_as_html(check_of("n[1-2]:4"), {});
  for (const char* word : {"<script", "src=", "@import", "url(", "<link", "https:"})
    CHECK_FALSE(has(page, word));
  // Names of XML's namespaces are no addresses.
  CHECK(count(page, "http:") == count(page, "xmlns=\"http://www.w3.org/"));
  CHECK(has(page, "content=\"default-src 'none'; style-src 'unsafe-inline'\""));
  CHECK(has(page, "prefers-color-scheme: dark"));
}

TEST_CASE("a picture by itself has colours that programs for drawing know, a page the viewer's") {
  const CheckInput input = check_of("n[1-2]:4");
  const std::string svg = report_as_svg(input);
  CHECK_FALSE(has(svg, "var("));
  CHECK(has(svg, ".topology .paper { fill: #ffffff; }"));
  CHECK(has(report_as_html(input, {}), ".topology .paper { fill: var(--paper); }"));
}

TEST_CASE("a picture has each GPU with its rank and each kind of link that there is") {
  CheckInput input = check_of("n[1-2]:4");
  made_up::add_pairs(&input);
  std::string svg = report_as_svg(input);
  for (int rank = 0; rank < 8; ++rank) CHECK(has(svg, ">rank " + std::to_string(rank) + "<"));
  CHECK(count(svg, ">NVSwitch<") == 4);  // and its title
  CHECK(has(svg, "GPU 3 - NVSwitch: NVLink x18"));
  CHECK(has(svg, "n1 - n2: 11.1 GB/s, round trip 13 us, by 10.0.0.1"));
  CHECK(has(svg, "H100 80GB HBM3<"));
  CHECK_FALSE(has(svg, "one PCIe switch"));
  svg = report_as_svg(check_of("n1:4", {.links = Links::kPairs}));
  CHECK(has(svg, "GPU 2 - GPU 3: NVLink x4"));
  CHECK_FALSE(has(svg, "GPU 1 - GPU 2"));
  svg = report_as_svg(check_of("n1:4", {.links = Links::kNone}));
  CHECK(has(svg, "GPU 0 - GPU 1: one PCIe switch"));
}

TEST_CASE("cores have the colours of the ranks that are bound to them") {
  JobSpec spec;
  spec.placement.bind_to = BindTo::kCore;
  const CheckInput input = check_of("n1:2", {.nodes = 1, .cores = 4, .gpus = 0}, spec);
  const std::string svg = report_as_svg(input);
  CHECK(has(svg, "<title>cores 0: rank 0</title>"));
  CHECK(has(svg, "<title>cores 1: rank 1</title>"));
  CHECK(has(svg, "<title>cores 2-3: no rank</title>"));
  CHECK(has(svg, "<title>rank 1, local rank 1: core 1</title>"));
}

TEST_CASE("hosts that do not answer, and paths that do not lead there, are marked") {
  CheckInput input = check_of("n[1-2]:4");
  made_up::add_pairs(&input);
  input.pairs.push_back({0, 1, {"10.0.0.1"}, {}, "refused"});
  input.hosts[1].failure = Error(ErrorKind::kStart, "no route");
  const std::string svg = report_as_svg(input);
  CHECK(has(svg, "class=\"host bad\""));
  CHECK(has(svg, ">does not answer</text>"));
  CHECK(has(svg, "n1 - n2: not reached"));
}

TEST_CASE("a picture has 128 hosts at most, and says how many more there are") {
  const std::string svg =
      report_as_svg(check_of("n[001-130]:1", {.nodes = 1, .cores = 1, .gpus = 0}));
  CHECK(count(svg, "class=\"host\"") == 128);
  CHECK(has(svg, "and 2 hosts more"));
  CHECK(report_as_svg(CheckInput{}).rfind("<svg", 0) == 0);
}

}  // namespace
}  // namespace hv::launcher
