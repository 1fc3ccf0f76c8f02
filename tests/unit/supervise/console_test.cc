// Tests of launcher/supervise/report/console: nothing that hvrun quotes reaches the terminal raw.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/console.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/unit/supervise/supervised.h"

using namespace hv;
using namespace hv::launcher;

namespace {

// What stands on standard error afterwards.
std::string told(const std::function<void(const Console&)>& tell) {
  const UniqueFd out = scratch_file(), err = scratch_file();
  OutputOptions options;
  options.stdout_fd = out.get();
  options.stderr_fd = err.get();
  OutputRoom room(
      options, [](std::uint32_t, std::size_t) {}, [](const std::string&, int, int) {});
  tell(Console(room, true, now()));
  room.flush();
  return content_of(err);
}

// Clears a terminal, sets its title, moves over the line, ends UTF-8; a control character of two
// bytes.
constexpr char kHostile[] = "\x1b[2J\x1b]0;x\x07\r\xff\xc2\x9b";
const std::string kShown = "\\x1b[2J\\x1b]0;x\\x07\\x0d\\xff\\xc2\\x9b";

}  // namespace

TEST_CASE("every message of the console is printable, and has its lines") {
  const std::string text = std::string("a\n  ") + kHostile;
  CHECK(told([&](const Console& console) { console.say(text); }) == "hvrun: a\n  " + kShown + "\n");
  CHECK(told([&](const Console& console) { console.say_error(text, kHostile); }) ==
        "hvrun: error: a\n  " + kShown + "\n  try: " + kShown + "\n");
  CHECK(told([&](const Console& console) { console.say_lines(text + "\n\nb"); }) ==
        "a\n  " + kShown + "\nb\n");
  CHECK(told([&](const Console& console) { console.log(text + "\n"); }) == "a\n  " + kShown + "\n");
  CHECK(told([&](const Console& console) {
          console.report_phase(kHostile);
        }).ends_with("  " + kShown + "\n"));
}
