// The agent's pure parts: tables, queues, frames, timers.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/heartbeat.h"
#include "launcher/agent/outgoing_queue.h"
#include "launcher/agent/ranks/output_frame.h"
#include "launcher/agent/ranks/rank_command.h"
#include "launcher/agent/ranks/rank_starter.h"
#include "launcher/facts/process_table.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

std::string stat_line(const std::string& name, char state = 'S', unsigned flags = 0) {
  return "42 (" + name + ") " + state + " 7 8 9 0 -1 " + std::to_string(flags) +
         " 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 18446744073709551615\n";
}

std::string sent(OutgoingQueue& queue, std::size_t bytes) {
  iovec pieces[8];
  std::string text;
  const int count = queue.next_buffers(pieces, 8);
  for (int i = 0; i < count; ++i)
    text.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  text.resize(std::min(bytes, text.size()));
  queue.consume(text.size());
  return text;
}

ProcessEntry process(pid_t pid, pid_t parent) {
  ProcessEntry entry;
  entry.pid = pid;
  entry.parent = parent;
  return entry;
}

}  // namespace

TEST_CASE("a stat line is read whatever the name holds") {
  for (const char* name : {"sh", "a b", "evil) S 1 2 3", "((", "", "new\nline"}) {
    const auto entry = parse_stat(stat_line(name));
    REQUIRE(entry);
    CHECK(entry->name == name);
    CHECK(entry->pid == 42);
    CHECK(entry->parent == 7);
    CHECK(entry->group == 8);
    CHECK(entry->session == 9);
    CHECK(entry->start_time == 12345);
  }
}

TEST_CASE("a malformed stat line is refused") {
  for (const char* text : {"", "42", "42 (sh", "42 (sh) S",
                           "x (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
                           "42 (sh) S one 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0"}) {
    CHECK(!parse_stat(text));
  }
}

TEST_CASE("a pid that kill would take for a group or for all processes is refused") {
  const std::string rest = " (sh) S 1 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0";
  CHECK(parse_stat("42" + rest));
  for (const char* pid : {"0", "-1", "-42", "4294967295", "4294967338"})
    CHECK(!parse_stat(pid + rest));
}

TEST_CASE("a signal is found in the kernel's set of signals") {
  const std::string status = "Name:\tx\nSigIgn:\t0000000001001006\nSigCgt:\t0000800100000000\n";
  CHECK(holds_signal(status, "SigCgt:", 48));
  CHECK(holds_signal(status, "SigCgt:", 33));
  for (const int other : {0, -1, 2, 3, 47, 49, 64, 65})
    CHECK_FALSE(holds_signal(status, "SigCgt:", other));
  CHECK_FALSE(holds_signal("SigCgt:\tzz\n", "SigCgt:", 1));
  CHECK_FALSE(holds_signal("", "SigCgt:", 48));
}

TEST_CASE("a process with PF_EXITING, a zombie, a core dump or a pending SIGKILL is ending") {
  CHECK(is_on_its_way_out(*parse_stat(stat_line("a", 'R', 0x400004)), ""));
  CHECK(is_on_its_way_out(*parse_stat(stat_line("a", 'Z')), ""));
  CHECK(is_on_its_way_out(*parse_stat(stat_line("a", 'D')), "Name:\ta\nCoreDumping:\t1\n"));
  CHECK(is_on_its_way_out(*parse_stat(stat_line("a", 'R')), "SigPnd:\t0000000000000100\n"));
  CHECK(!is_on_its_way_out(*parse_stat(stat_line("a", 'R', 0x400000)),
                           "Name:\ta\nCoreDumping:\t0\nSigPnd:\t0000000000004000\n"));
}

TEST_CASE("descendants are found through generations, and cycles end") {
  const std::vector<ProcessEntry> all{process(2, 1), process(3, 2), process(4, 3),
                                      process(5, 1), process(9, 8), process(8, 9)};
  CHECK(descendants(all, {2}).size() == 2);
  CHECK(descendants(all, {1}).size() == 4);
  CHECK(descendants(all, {4}).empty());
  CHECK(descendants(all, {8}).size() == 1);
}

TEST_CASE("the process table holds this process") {
  const auto own = read_process(::getpid());
  REQUIRE(own);
  CHECK(own->parent == ::getppid());
  CHECK(!read_processes().empty());
  CHECK(read_processes("/no/such/proc").empty());
}

TEST_CASE("an environment entry must be whole") {
  const std::string text("A=1\0HVRUN_JOB_ID=ab\0X_HVRUN_JOB_ID=cd\0HVRUN_JOB_ID=abc\0", 56);
  CHECK(environ_holds(text, "HVRUN_JOB_ID=ab"));
  CHECK(environ_holds(text, "HVRUN_JOB_ID=abc"));
  CHECK(environ_holds(text, "A=1"));
  CHECK(!environ_holds(text, "HVRUN_JOB_ID=a"));
  CHECK(!environ_holds(text, "HVRUN_JOB_ID=cd"));
  CHECK(!environ_holds("", "A=1"));
}

TEST_CASE("control frames overtake waiting output, but never split a frame") {
  OutgoingQueue queue;
  queue.add_output("1111");
  queue.add_output("2222");
  CHECK(sent(queue, 2) == "11");
  queue.add_control("CC");
  CHECK(queue.output_bytes() == 6);
  CHECK(sent(queue, 100) == "11CC2222");
  CHECK(queue.is_empty());
  CHECK(queue.output_bytes() == 0);
}

TEST_CASE("a frame of output or of results equals the encoded message") {
  wire::Output output;
  output.rank = 7;
  output.stream = 2;
  output.wall_clock_ns = 123456789;
  for (const std::string& bytes : {std::string(), std::string("x"), std::string(100000, '\0')}) {
    output.bytes = bytes;
    CHECK(output_frame(7, RankStream::kStderr, 123456789, bytes) == encode_frame_of(output));
    CHECK(output_frame(0, RankStream::kResults, 1, bytes) ==
          encode_frame_of(wire::Result{false, bytes}));
  }
  output.bytes.clear();
  output.end = true;
  CHECK(output_end_frame(7, RankStream::kStderr, 123456789) == encode_frame_of(output));
  CHECK(output_end_frame(0, RankStream::kResults, 1) == encode_frame_of(wire::Result{true, ""}));
}

TEST_CASE("the heartbeat timeout counts neither announced pauses nor stops of this process") {
  const TimePoint begin = now();
  HeartbeatTimeout timeout(10s, begin);
  CHECK(timeout.interval() == 2s);
  const auto expires = [&](int from, int to) {
    for (int second = from; second < to; second += 2) {
      if (timeout.check(begin + std::chrono::seconds(second))) return second;
    }
    return -1;
  };
  SUBCASE("too long") { CHECK(expires(2, 30) == 12); }
  SUBCASE("heard of in between") {
    CHECK(expires(2, 10) == -1);
    timeout.note_heard(begin + 9s);
    CHECK(expires(10, 30) == 20);
  }
  SUBCASE("this process stood still: a full time more") {
    CHECK(expires(2, 10) == -1);
    CHECK(expires(1000, 1100) == 1012);
  }
  SUBCASE("a pause goes on when the timeout is set") {
    timeout.pause(true, begin);
    timeout.set(10s, begin);
    CHECK(expires(2, 1000) == -1);
  }
  SUBCASE("announced") {
    timeout.pause(true, begin);
    CHECK(expires(2, 1000) == -1);
    timeout.pause(false, begin + 1000s);
    CHECK(expires(1000, 1100) == 1012);
  }
}

TEST_CASE("the loop runs timers in order, and no cancelled timer") {
  EventLoop loop;
  std::string order;
  loop.call_after(2ms, [&] { order += 'b'; });
  loop.call_after(1ms, [&] { order += 'a'; });
  const auto never = loop.call_after(1ms, [&] { order += 'x'; });
  loop.call_after(3ms, [&] {
    order += 'c';
    loop.stop();
  });
  loop.cancel(never);
  loop.run();
  CHECK(order == "abc");
}

TEST_CASE("a timer that sets itself again at once starves no descriptor and no timer") {
  EventLoop loop;
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    loop.call_at(TimePoint::min(), again);
  };
  again();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd in(ends[0]), out(ends[1]);
  bool was_ready = false;
  loop.watch(in.get(), EPOLLIN, [&](std::uint32_t) {
    was_ready = true;
    loop.unwatch(in.get());
  });
  REQUIRE(::write(out.get(), "x", 1) == 1);
  loop.call_after(5ms, [&] { loop.stop(); });
  loop.run();
  CHECK(was_ready);
  CHECK(rounds > 1);
}

TEST_CASE(
    "the loop refuses a plain file, and drops events of a descriptor unwatched in a callback") {
  EventLoop loop;
  UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  CHECK(!loop.watch(file.get(), EPOLLIN, [](std::uint32_t) {}));
  int first[2], second[2];
  REQUIRE(::pipe2(first, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(second, O_CLOEXEC) == 0);
  int calls = 0;
  // Both are ready; whichever comes first unwatches and closes both.
  const auto once = [&](std::uint32_t) {
    ++calls;
    for (const int fd : {first[0], second[0]}) {
      loop.unwatch(fd);
      ::close(fd);
    }
  };
  loop.watch(first[0], EPOLLIN, once);
  loop.watch(second[0], EPOLLIN, once);
  ::close(first[1]);
  ::close(second[1]);
  loop.run_once(now() + 1s);
  CHECK(calls == 1);
}

TEST_CASE("pipes are large for few ranks and modest for many") {
  CHECK(pipe_bytes_for(1) == 1 << 20);
  CHECK(pipe_bytes_for(2) == 1 << 20);
  CHECK(pipe_bytes_for(100) == 256 << 10);
  CHECK(pipe_bytes_for(100000) == 64 << 10);
}

TEST_CASE("an environment keeps the user's PYTHONUNBUFFERED and an exported PWD") {
  wire::Launch launch;
  launch.programs = {{{"p"}, "/work", {}}};
  launch.environment = {"PYTHONUNBUFFERED=", "PWD=/mine", "no entry", "=neither"};
  const auto entries = RankEnvironments(launch, Environment()).of_rank({}).entries();
  CHECK(entries == std::vector<std::string>{"PWD=/mine", "PYTHONUNBUFFERED="});
}

TEST_CASE("an empty or missing cgroup is killed and removed without effect") {
  JobCgroup none;
  CHECK(!none.exists());
  CHECK(none.directory().empty());
  none.kill();
  CHECK(none.remove());
  JobCgroup gone = JobCgroup::at("/no/such/group");
  gone.kill();
  CHECK(gone.remove());
}
