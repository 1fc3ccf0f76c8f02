// Output by credits, stdin, terminals: the real agent with ranks that write fast, late or not at
// all.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <csignal>

#include "src/base/text.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;

namespace {

std::size_t resident_kib(pid_t pid) {
  for (const std::string& line :
       split(file_content("/proc/" + std::to_string(pid) + "/status"), '\n')) {
    if (line.rfind("VmRSS:", 0) == 0) return static_cast<std::size_t>(std::stoul(line.substr(6)));
  }
  return 0;
}

}  // namespace

TEST_CASE("a fast writer without credit is stopped, in bounded memory, and loses nothing") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell("head -c 30000000 /dev/zero | tr '\\0' x; echo end");
  launch.credit_bytes = 100000;
  client.withhold_credit();
  const pid_t rank = static_cast<pid_t>(client.start(launch).pids.at(0));
  const std::size_t before = resident_kib(client.agent());
  // Credit is not given back: exactly what was granted comes, and the rank waits in a write.
  CHECK_THROWS((void)client.expect<wire::Exited>(500ms));
  client.until([&] { return client.received_bytes(0) >= 100000; }, "100000 bytes");
  CHECK(is_alive(rank));
  CHECK(client.received_bytes(0) == 100000);
  CHECK(resident_kib(client.agent()) < before + 8192);
  CHECK(client.output_of(0) == std::string(30000000, 'x') + "end\n");
  CHECK(client.finish() == 0);
}

TEST_CASE("a rank's result pipe has a credit of its own, is no output, and its end is reported") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell(
      "[ $RANK = 0 ] || exec echo ${HVRUN_RESULT_FD-none}; head -c 3000000 /dev/zero | tr '\\0' r "
      ">/dev/fd/$HVRUN_RESULT_FD; echo written; exec sleep 1000",
      2);
  launch.ranks[0].has_result_pipe = true;
  launch.credit_bytes = 4096;
  client.start(launch);
  CHECK(client.output_of(1) == "none\n");
  std::size_t received = 0;
  while (received < wire::Result::kFirstCredit) {
    const auto result = client.expect<wire::Result>();
    REQUIRE_FALSE(result.end);
    REQUIRE(result.bytes.size() <= wire::Result::kMostBytes);
    REQUIRE(result.bytes.find_first_not_of('r') == std::string::npos);
    received += result.bytes.size();
  }
  CHECK(received == wire::Result::kFirstCredit);
  client.send(wire::Credit{0, 1 << 20});  // for output, and so of no use here
  CHECK_FALSE(client.comes<wire::Result>(200ms));
  client.send(wire::Credit{0, 1 << 30, true});
  while (received < 3000000) received += client.expect<wire::Result>().bytes.size();
  CHECK(received == 3000000);
  client.until([&] { return client.output_so_far(0) == "written\n"; }, "the rank's word");
  CHECK_FALSE(client.comes<wire::Result>(0ms));  // the rank has not closed it yet
  client.send(wire::End{0});
  const auto last = client.expect<wire::Result>();
  CHECK(last.end);
  CHECK(last.bytes.empty());
  (void)client.expect<wire::Empty>();
  CHECK(client.wait_for_exit() == 0);
}

TEST_CASE("every byte written before a rank died comes before its stream ends") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell(
      "head -c 700000 /dev/zero | tr '\\0' x; printf last; printf oops >&2; kill -KILL $$");
  launch.credit_bytes = 50000;
  client.start(launch);
  const std::string out = client.output_of(0);
  CHECK(out.size() == 700004);
  CHECK(out.substr(700000) == "last");
  CHECK(client.output_of(0, 2) == "oops");
  const auto exited = client.expect<wire::Exited>();
  CHECK(exited.by_signal);
  CHECK(exited.code == SIGKILL);
  CHECK(!exited.signal_was_ours);
  CHECK(client.finish() == 0);
}

TEST_CASE("a rank without credit holds back neither control messages nor another rank") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell(
      "[ $RANK = 1 ] && { echo other; exit 7; }; while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; "
      "done",
      2);
  launch.credit_bytes = 4096;
  client.withhold_credit();
  client.start(launch);
  CHECK(client.expect<wire::Exited>().code == 7);
  client.send(wire::Query{5});
  CHECK(client.expect<wire::QueryReply>().number == 5);
  client.send(wire::End{0});
  // Only credit lets the rest out, and only then the host is empty.
  CHECK(client.output_of(1) == "other\n");
  client.output_of(0);
  (void)client.expect<wire::Empty>();
  CHECK(client.wait_for_exit() == 0);
}

TEST_CASE(
    "a background process that keeps the streams open is ended after the last rank, then the "
    "streams end") {
  TemporaryFolder folder;
  AgentClient client;
  client.set_up();
  client.start(launch_shell("sh -c 'echo $$ > " + (folder / "pids") +
                            "; echo from below; while :; do sleep 1; done' & "
                            "while [ ! -s " +
                            (folder / "pids") + " ]; do sleep 0.01; done; echo done"));
  CHECK(client.expect<wire::Exited>().code == 0);
  CHECK(client.output_of(0).size() == 16);
  expect_gone(pids_in(folder / "pids", 1));
  CHECK(client.finish() == 0);
}

TEST_CASE("stdin reaches the rank that gets it, with its end, and is acknowledged") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell("wc -c", 2);
  launch.ranks[0].stdin_mode = wire::StdinMode::kForwarded;
  client.start(launch);
  const std::string piece(100000, 'x');
  std::size_t accepted = 0;
  for (int i = 0; i < 10; ++i) {
    client.send(wire::Stdin{0, false, piece});
    for (std::size_t taken = 0; taken < piece.size();) taken += client.expect<wire::Credit>().bytes;
    accepted += piece.size();
  }
  client.send(wire::Stdin{0, true, ""});
  CHECK(client.output_of(0) == "1000000\n");
  CHECK(client.output_of(1) == "0\n");  // /dev/null
  CHECK(accepted == 1000000);
  CHECK(client.finish() == 0);
}

TEST_CASE("a rank that closes its stdin returns all credit to hvrun") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell("exec 0<&-; echo closed; sleep 1000");
  launch.ranks[0].stdin_mode = wire::StdinMode::kForwarded;
  client.start(launch);
  client.until([&] { return client.output_so_far(0) == "closed\n"; }, "the rank's word");
  client.send(wire::Stdin{0, false, std::string(200000, 'x')});
  CHECK(client.expect<wire::Credit>().bytes == 200000);
  CHECK(client.finish() == 0);
}

TEST_CASE("far more stdin than may be in flight ends the job") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell("exec sleep 1000");
  launch.ranks[0].stdin_mode = wire::StdinMode::kForwarded;
  client.start(launch);
  client.send(wire::Stdin{0, false, std::string(8 << 20, 'x')});
  CHECK(client.wait_for_exit() == 1);
}

TEST_CASE("a rank's terminal has the requested size, carries both streams and is read to its end") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell(
      "[ -t 1 ] && [ -t 2 ] && ! [ -t 0 ] && stty size < /dev/tty; echo err >&2; seq 1 5000; cat; "
      "echo last",
      2);
  launch.pty = true;
  launch.window = {111, 33};
  client.start(launch);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::string out = client.output_of(rank);
    CHECK(out.rfind("33 111\r\nerr\r\n1\r\n", 0) == 0);
    CHECK(out.substr(out.size() - 12) == "5000\r\nlast\r\n");
  }
  CHECK(client.finish() == 0);
}

TEST_CASE("stdin through a terminal arrives as if typed, and ends") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_shell("stty -echo; echo ready; cat; echo over");
  launch.pty = true;
  launch.ranks[0].stdin_mode = wire::StdinMode::kForwarded;
  client.start(launch);
  client.until([&] { return client.output_so_far(0) == "ready\r\n"; }, "ready");
  client.send(wire::Stdin{0, false, "typed\n"});
  client.send(wire::Stdin{0, true, ""});
  CHECK(client.output_of(0) == "ready\r\ntyped\r\nover\r\n");
  CHECK(client.finish() == 0);
}
