// The words of the bootstrap: the reply parser under every cut, and bounds on what a host may
// print.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/start_line.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "tests/unit/temporary_folder.h"

using hv::launcher::BootstrapReply;
using hv::launcher::ReplyParser;
using ReplyKind = hv::launcher::BootstrapReply::Kind;

namespace {

const char* kMarker = "hv0123456789abcdef";

std::string line(const std::string& words) { return std::string(kMarker) + " " + words + "\n"; }

}  // namespace

TEST_CASE("the reply parser reads each answer") {
  ReplyParser parser(kMarker);
  parser.feed(line("other aarch64") + line("need x86_64 /home/a b/.cache/hvrun") +
              line("fail /a: full; /b: noexec; ") + line("run") + "rest");
  const auto other = parser.next();
  REQUIRE(other);
  CHECK(other->kind == ReplyKind::kOther);
  CHECK(other->machine == "aarch64");
  const auto need = parser.next();
  REQUIRE(need);
  CHECK(need->kind == ReplyKind::kNeed);
  CHECK(need->machine == "x86_64");
  CHECK(need->directory == "/home/a b/.cache/hvrun");
  const auto fail = parser.next();
  REQUIRE(fail);
  CHECK(fail->kind == ReplyKind::kFail);
  CHECK(fail->reasons == "/a: full; /b: noexec");
  CHECK(parser.next()->kind == ReplyKind::kRun);
  CHECK(parser.take_rest() == "rest");
}

TEST_CASE(
    "the shell is ready before the script's marker counts, and not when its command is echoed") {
  ReplyParser parser(hv::launcher::kShellMarker);
  parser.feed("+ " + hv::launcher::start_line() + "\n" + line("run"));
  CHECK_FALSE(parser.next());
  parser.feed("hvrun-shell ready\n");
  const auto ready = parser.next();
  REQUIRE(ready);
  CHECK(ready->kind == ReplyKind::kShell);
  parser.expect(kMarker);
  parser.feed(line("run") + "rest");
  REQUIRE(parser.next());
  CHECK(parser.take_rest() == "rest");
}

TEST_CASE("noise before an answer is skipped, even without a newline, and kept for messages") {
  ReplyParser parser(kMarker);
  parser.feed("Welcome!\nhv0123 nearly\nno newline:" + line("run") + std::string("\0\1", 2));
  REQUIRE(parser.next());
  CHECK(parser.take_rest() == std::string("\0\1", 2));
  CHECK(parser.noise() == "Welcome!\nhv0123 nearly\nno newline:");
}

TEST_CASE("an answer that is not known is a failure, not silence") {
  ReplyParser parser(kMarker);
  parser.feed(line("dance"));
  const auto reply = parser.next();
  REQUIRE(reply);
  CHECK(reply->kind == ReplyKind::kFail);
  CHECK_FALSE(reply->reasons.empty());
}

TEST_CASE("a host that prints without end is noticed, and memory stays bounded") {
  ReplyParser parser(kMarker);
  const std::string noise(32768, 'x');
  for (int i = 0; i < 600 && !parser.flooded(); ++i) {
    parser.feed(noise);
    CHECK_FALSE(parser.next());
  }
  CHECK(parser.flooded());
  CHECK(parser.noise().size() <= 4096 + 32);

  ReplyParser endless(kMarker);
  endless.feed(std::string(kMarker) + " need ");
  for (int i = 0; i < 3; ++i) endless.feed(noise);
  CHECK_FALSE(endless.next());
  CHECK(endless.flooded());
}

TEST_CASE("the reply parser gives the same answers however its input is cut") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (int round = 0; round < 500; ++round) {
    std::string input;
    std::vector<ReplyKind> expected;
    for (std::size_t i = below(4); i > 0; --i) {
      for (std::size_t n = below(60); n > 0; --n) input += static_cast<char>(below(256));
      if (below(3) == 0) input.append(kMarker, below(18));  // the beginning of a marker
      input += line(below(2) ? "need x86_64 /tmp" : "fail /tmp: full");
      expected.push_back(input.find(" need x86_64 /tmp\n", input.size() - 18) != std::string::npos
                             ? ReplyKind::kNeed
                             : ReplyKind::kFail);
    }
    input += line("run");
    expected.push_back(ReplyKind::kRun);
    const std::string rest(below(20), 'r');
    input += rest;

    ReplyParser parser(kMarker);
    std::vector<ReplyKind> got;
    for (std::size_t at = 0; at < input.size();) {
      const std::size_t size = std::min(input.size() - at, 1 + below(9));
      parser.feed(std::string_view(input).substr(at, size));
      at += size;
      while (got.empty() || got.back() != ReplyKind::kRun) {
        const auto reply = parser.next();
        if (!reply) break;
        got.push_back(reply->kind);
      }
    }
    CHECK(got == expected);
    CHECK(parser.take_rest() == rest);
  }
}

TEST_CASE("random bytes never make an answer of their own") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  ReplyParser parser(kMarker);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    parser.feed(bytes);
    CHECK_FALSE(parser.next());
  }
}

TEST_CASE("the bootstrap script is one line that holds what it was given") {
  const std::string script = hv::launcher::bootstrap_script({"hvmark", "0.1-abc", 12345, "x86_64"});
  CHECK(script.find('\n') == script.size() - 1);
  CHECK(script.find('@') == std::string::npos);
  CHECK(script.find("hv_mark=hvmark; hv_file=agent-0.1-abc; hv_size=12345; hv_want='x86_64';") ==
        0);
}

TEST_CASE("the bootstrap script tries no other folder once hvrun is gone") {
  const hv::tests::TemporaryFolder folder;
  const std::string cache = folder.folder("home/.cache"), temporary = folder.folder("tmp");
  std::ofstream(folder / "start") << hv::launcher::start_line();
  const std::string script = hv::launcher::bootstrap_script({"hvmark", "0.1-abc", 12345, ""});
  std::ofstream(folder / "input") << "\n\n: of no effect\n" << script << "half of it";
  const std::string command = "cd " + folder.path() +
                              " && env -i PATH=/usr/bin:/bin HOME=$PWD/home TMPDIR=$PWD/tmp " +
                              "/bin/sh start <input >output";
  CHECK(std::system(command.c_str()) != 0);
  CHECK(hv::tests::file_content(folder / "output").find("hvrun-shell ready\nhvmark need ") == 0);
  CHECK(std::filesystem::is_empty(temporary));
  CHECK(std::filesystem::is_empty(cache + "/hvrun"));
}
