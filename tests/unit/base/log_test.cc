// Tests of src/base/log.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <regex>
#include <thread>
#include <vector>

#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "tests/unit/pipe.h"

using hv::tests::Pipe;

namespace {

std::string sunk;
void sink(const std::string& line) { sunk += line; }

// Lines go to `sunk` while one lives; afterwards the log is as a program finds it.
struct SunkLog {
  explicit SunkLog(hv::LogLevel level, const std::string& who = "hvrun") {
    sunk.clear();
    hv::configure_log(level, who);
    hv::set_log_sink(&sink);
  }
  ~SunkLog() {
    hv::set_log_sink(nullptr);
    hv::configure_log(hv::LogLevel::kWarn, "hvrun");
  }
};

// Puts fd in the place of descriptor 2 while it lives; -1 closes that.
struct StderrReplaced {
  explicit StderrReplaced(int fd) : before(::fcntl(2, F_DUPFD_CLOEXEC, 10)) {
    if (fd < 0) {
      ::close(2);
    } else {
      ::dup2(fd, 2);
    }
  }
  ~StderrReplaced() { ::dup2(before.get(), 2); }
  hv::UniqueFd before;
};

std::string read_to_end(int fd) {
  std::string result;
  char buffer[4096];
  for (ssize_t got; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
    result.append(buffer, static_cast<std::size_t>(got));
  return result;
}

constexpr hv::LogLevel kLevels[] = {hv::LogLevel::kError, hv::LogLevel::kWarn, hv::LogLevel::kInfo,
                                    hv::LogLevel::kDebug, hv::LogLevel::kTrace};

}  // namespace

TEST_CASE("a log level is known by its word only") {
  const std::pair<const char*, hv::LogLevel> cases[] = {{"error", hv::LogLevel::kError},
                                                        {"warn", hv::LogLevel::kWarn},
                                                        {"info", hv::LogLevel::kInfo},
                                                        {"debug", hv::LogLevel::kDebug},
                                                        {"trace", hv::LogLevel::kTrace}};
  for (const auto& [word, meant] : cases) {
    CAPTURE(word);
    auto level = meant == hv::LogLevel::kError ? hv::LogLevel::kTrace : hv::LogLevel::kError;
    CHECK(hv::parse_log_level(word, &level));
    CHECK(level == meant);
  }
  for (const char* wrong : {"", "WARN", "warning", " info", "infos", "2", "err"}) {
    CAPTURE(wrong);
    hv::LogLevel level = hv::LogLevel::kDebug;
    CHECK_FALSE(hv::parse_log_level(wrong, &level));
    CHECK(level == hv::LogLevel::kDebug);
  }
}

TEST_CASE("a level lets itself and everything graver through") {
  for (const hv::LogLevel configured : kLevels) {
    const SunkLog log(configured);
    for (const hv::LogLevel level : kLevels) CHECK(hv::log_enabled(level) == (level <= configured));
  }
}

TEST_CASE("a line holds time, level, who, area and text") {
  const SunkLog log(hv::LogLevel::kTrace, "node1/3");
  HV_LOG(kInfo, "spawn") << "rank " << 7 << " pid=" << 1234u << ' ' << 0.5;
  CHECK(std::regex_match(
      sunk, std::regex(R"(\d\d:\d\d:\d\d\.\d{3} info node1/3 spawn: rank 7 pid=1234 0\.5\n)")));
}

TEST_CASE("each level is named in its line") {
  const SunkLog log(hv::LogLevel::kTrace);
  HV_LOG(kError, "a") << 1;
  HV_LOG(kWarn, "a") << 2;
  HV_LOG(kInfo, "a") << 3;
  HV_LOG(kDebug, "a") << 4;
  HV_LOG(kTrace, "a") << 5;
  std::string levels;
  for (const std::string& line : hv::split(sunk, '\n'))
    if (!line.empty()) levels += line.substr(line.find(' '));
  CHECK(levels ==
        " error hvrun a: 1 warn hvrun a: 2 info hvrun a: 3 debug hvrun a: 4 trace hvrun a: 5");
}

TEST_CASE("what a level holds back is not even worked out") {
  const SunkLog log(hv::LogLevel::kWarn);
  int worked_out = 0;
  const auto text = [&worked_out] { return ++worked_out; };
  HV_LOG(kInfo, "area") << text();
  CHECK(worked_out == 0);
  HV_LOG(kWarn, "area") << text();
  CHECK(worked_out == 1);
  CHECK(sunk.find("area: 1\n") != std::string::npos);
}

TEST_CASE("a later configuration replaces level and name") {
  const SunkLog log(hv::LogLevel::kError, "first");
  hv::configure_log(hv::LogLevel::kInfo, "second/0");
  HV_LOG(kInfo, "area") << "";
  CHECK(sunk.find(" info second/0 area: \n") != std::string::npos);
  CHECK(sunk.find("first") == std::string::npos);
}

TEST_CASE("without a sink a line goes to descriptor 2, with one nothing does") {
  Pipe pipe;
  {
    const StderrReplaced stderr_is(pipe.writer.get());
    HV_LOG(kError, "area") << "to stderr";
    const SunkLog log(hv::LogLevel::kWarn);
    HV_LOG(kError, "area") << "to the sink";
  }
  pipe.writer.reset();
  const std::string written = read_to_end(pipe.reader.get());
  CHECK(written.find("area: to stderr\n") != std::string::npos);
  CHECK(written.find("to the sink") == std::string::npos);
}

TEST_CASE("lines of several threads come whole, each in one write") {
  constexpr int kThreads = 4, kLines = 100;  // all of it fits into the pipe
  Pipe pipe;
  {
    const StderrReplaced stderr_is(pipe.writer.get());
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([thread] {
        for (int i = 0; i < kLines; ++i)
          HV_LOG(kError, "area") << "thread=" << thread << " i=" << i;
      });
    for (std::thread& thread : threads) thread.join();
  }
  pipe.writer.reset();
  const auto lines = hv::split(read_to_end(pipe.reader.get()), '\n');
  REQUIRE(lines.size() == kThreads * kLines + 1);
  const std::regex whole(R"([0-9:.]{12} error hvrun area: thread=\d i=\d+)");
  std::size_t good = 0;
  for (const std::string& line : lines) good += std::regex_match(line, whole) ? 1 : 0;
  CHECK(good == kThreads * kLines);
}

TEST_CASE("a line longer than a pipe arrives whole although signals cut its writes") {
  struct sigaction interrupting {
  }, before{};
  interrupting.sa_handler = [](int) {};  // without SA_RESTART
  ::sigaction(SIGUSR1, &interrupting, &before);
  const std::string text(1 << 20, 'x');
  Pipe pipe;
  std::string written;
  {
    const StderrReplaced stderr_is(pipe.writer.get());
    pipe.writer.reset();  // descriptor 2 is the only end now
    std::thread writer([&text] {
      HV_LOG(kError, "area") << text;
      ::close(2);  // so that a line cut short ends the reading, too
    });
    for (int i = 0; i < 1000; ++i) {  // it waits: nobody reads yet
      ::pthread_kill(writer.native_handle(), SIGUSR1);
      std::this_thread::yield();
    }
    char buffer[4096];
    for (ssize_t got; (got = ::read(pipe.reader.get(), buffer, sizeof buffer)) > 0;) {
      written.append(buffer, static_cast<std::size_t>(got));
      ::pthread_kill(writer.native_handle(), SIGUSR1);
    }
    writer.join();
  }
  ::sigaction(SIGUSR1, &before, nullptr);
  REQUIRE(written.size() > text.size());
  CHECK(written.substr(written.size() - text.size() - 1) == text + "\n");
}

TEST_CASE("a line that nobody can take is given up without waiting") {
  {
    const StderrReplaced closed(-1);
    HV_LOG(kError, "area") << "to nobody";
  }
  Pipe pipe;
  ::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK);
  const std::string fill(4096, 'x');
  while (::write(pipe.writer.get(), fill.data(), fill.size()) > 0) {
  }
  {
    const StderrReplaced full(pipe.writer.get());
    HV_LOG(kError, "area") << "to a full pipe";
  }
  pipe.writer.reset();
  CHECK(read_to_end(pipe.reader.get()).find("full pipe") == std::string::npos);
}

TEST_CASE("a log line is printable, whatever it quotes") {
  const SunkLog log(hv::LogLevel::kInfo);
  HV_LOG(kInfo, "test") << "said \x1b[2J\r\xff" << '\x07';
  CHECK(sunk.ends_with(" info hvrun test: said \\x1b[2J\\x0d\\xff\\x07\n"));
}
