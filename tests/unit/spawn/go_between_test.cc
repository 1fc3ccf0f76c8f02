// Commands that reach hosts end with all their children, whatever becomes of the start.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/go_between.h"

#include <fcntl.h>

#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <thread>

#include "launcher/spawn/process_channel.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

std::unique_ptr<ProcessChannel> start_script(asio::io_context& io, const std::string& script) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin"};
  return std::make_unique<ProcessChannel>(io.get_executor(), command, AtClose::kTerminate,
                                          "run a script");
}

// The pid that the script prints, as its /proc folder.
std::string process_it_names(asio::io_context& io, ProcessChannel& channel) {
  std::string text;
  while (!contains(text, "\n")) {
    const std::string more = run(io, read_exactly(channel, 1));
    REQUIRE_FALSE(more.empty());
    text += more;
  }
  const std::string process = "/proc/" + std::string(trim(text));
  REQUIRE(std::filesystem::exists(process));
  return process;
}

bool ends(const std::string& process) {
  const auto is_gone = [&process] {
    const std::string stat = file_content(process + "/stat");
    return !contains(stat, ") ") || contains(stat, ") Z ");
  };
  const TimePoint deadline = now() + std::chrono::seconds(5);
  while (!is_gone() && now() < deadline) std::this_thread::yield();
  return is_gone();
}

}  // namespace

// On a busy machine a program may end long after its stream has.
TEST_CASE("a command's output is whole only when the command has ended") {
  const TemporaryFolder folder;
  const std::string fifo = folder.path() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const UniqueFd writer(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  asio::io_context io;
  asio::steady_timer later(io, std::chrono::seconds(1));
  later.async_wait(
      [&writer](const boost::system::error_code&) { CHECK(::write(writer.get(), "\n", 1) == 1); });
  Command command;
  command.argv = {"/bin/sh", "-c", "echo all; exec <&- >&-; read line 0<" + fifo};
  command.environment = {"PATH=/usr/bin:/bin"};
  std::function<void()> cancel;
  const CommandOutput output = run(io, run_command(command, 100, "run a script", &cancel));
  CHECK(output.text == "all\n");
  CHECK_MESSAGE(output.clean, output.words);
}

TEST_CASE("the children of a command that still starts end with hvrun") {
  asio::io_context io;
  const auto channel = start_script(io, "sleep 47 & echo $!; wait");
  const std::string child = process_it_names(io, *channel);
  end_go_betweens();
  CHECK(ends(child));
}

TEST_CASE("children that ignore SIGTERM end with hvrun, too, and in time") {
  asio::io_context io;
  const auto channel = start_script(io, "trap '' TERM; sleep 47 & echo $!; wait");
  const std::string child = process_it_names(io, *channel);
  channel->close();
  const TimePoint begun = now();
  end_go_betweens();
  CHECK(now() - begun < std::chrono::seconds(30));
  CHECK(ends(child));
}

TEST_CASE("what a command that has ended leaves behind ends with hvrun") {
  asio::io_context io;
  auto channel = start_script(io, "sleep 47 <&- >&- 2>&- & echo $!; exit 3");
  const std::string child = process_it_names(io, *channel);
  CHECK(run(io, read_exactly(*channel, 1)).empty());
  CHECK(contains(channel->last_words(), "exit code 3"));
  channel.reset();
  end_go_betweens();
  CHECK(ends(child));
}

TEST_CASE("a command that has ended is reaped in the end") {
  asio::io_context io;
  auto channel = start_script(io, "echo $$; kill -USR1 $$");
  const std::string leader = process_it_names(io, *channel);
  CHECK(run(io, read_exactly(*channel, 1)).empty());
  CHECK(contains(channel->last_words(), "SIGUSR1"));
  channel.reset();
  end_go_betweens();
  CHECK_FALSE(std::filesystem::exists(leader));
}
