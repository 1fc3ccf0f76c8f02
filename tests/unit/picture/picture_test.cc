// SPDX-License-Identifier: Apache-2.0
#include "launcher/picture/picture.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("a picture escapes what it is given") {
  CHECK(escaped("<a b=\"c\">&'") == "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
  CHECK(escaped("\x1b[2J\n\x7f") == "\\x1b[2J\\x0a\\x7f");
  CHECK(escaped("\xff\xc3\xa4") == "\\xff\xc3\xa4");
  CHECK(escaped("\xef\xbf\xbe-\xef\xbf\xbf") == "\xef\xbf\xbd-\xef\xbf\xbd");  // no XML
  CHECK(escaped("\xef\xbf\xbd") == "\xef\xbf\xbd");
  CHECK(escaped("\xef\xbc\xa1") == "\xef\xbc\xa1");
}

TEST_CASE("text is cut to columns, of which wide letters take two") {
  CHECK(cut_to("node1", 5) == "node1");
  CHECK(cut_to("node1", 4) == "nod\u2026");
  CHECK(cut_to("node1", 1) == "\u2026");
  CHECK(cut_to("node1", 0) == "");
  CHECK(cut_to("", 0) == "");
  CHECK(cut_to("\u4e3b\u4e3b", 4) == "\u4e3b\u4e3b");
  CHECK(cut_to("\u4e3b\u4e3b", 3) == "\u4e3b\u2026");
  CHECK(columns_of("a\u4e3b") == 3);
  CHECK(width_of(columns_in(100, 10), 10) <= 100);
}

TEST_CASE("a picture is one svg with a name, and titles where they are given") {
  Picture picture;
  picture.open("box", "a < b");
  picture.rect({1, 2, 30, 40}, "host", "#123456");
  picture.text(3, 4, 30, "long name", {10, "soft", Anchor::kMiddle});
  picture.close();
  const std::string svg = picture.finished(50, 60, "two & more", ".a {}\n");
  CHECK(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0) == 0);
  CHECK(svg.find("<title>two &amp; more</title>") != std::string::npos);
  CHECK(svg.find("<g class=\"box\"><title>a &lt; b</title>") != std::string::npos);
  CHECK(svg.find("<rect x=\"1\" y=\"2\" width=\"30\" height=\"40\" class=\"host\" "
                 "fill=\"#123456\"/>") != std::string::npos);
  CHECK(svg.find("text-anchor=\"middle\">lon\u2026</text>") != std::string::npos);
}

}  // namespace
}  // namespace hv::launcher
