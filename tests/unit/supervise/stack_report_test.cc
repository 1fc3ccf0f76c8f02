// Tests of stack_frames and stack_report; the samples were taken from CPython 3.11, elfutils 0.188
// and gdb 13.1.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stacks/stack_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "launcher/supervise/stacks/stack_frames.h"

using namespace hv;
using namespace hv::launcher;

namespace {

using Frames = std::vector<std::string>;

const std::string kPython =
    "Thread 0x00007f0d0625d6c0 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
    "  File \"/tmp/w.py\", line 5 in idle\n"
    "\n"
    "Current thread 0x00007f0d06518040 (most recent call first):\n"
    "  File \"/tmp/w.py\", line 9 in elsewhere\n"
    "  File \"/tmp/w.py\", line 8 in elsewhere\n"
    "  File \"/tmp/w.py\", line 10 in <module>\n";

const std::string kElfutils =
    "PID 5076 - process\n"
    "TID 5076:\n"
    "#0  0x00007f241ada0df2 __futex_wait@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6\n"
    "#1  0x000000000055b963 - /usr/bin/python3.11\n"
    "#2  0x000055b9643a7171 hv::(anonymous namespace)::wait(std::atomic<bool> const&) - /tmp/s/c\n"
    "TID 5078:\n"
    "#0  0x00007f241ada0df2 pause - /usr/lib/x86_64-linux-gnu/libc.so.6\n";

const std::string kGdb =
    "[New LWP 5078]\n"
    "0x00007f241ada0df2 in __libc_pause () at ../sysdeps/unix/sysv/linux/pause.c:29\n"
    "\n"
    "Thread 1 (Thread 0x7f241acca740 (LWP 5076) \"c\"):\n"
    "#0  0x00007f241ada0df2 in __libc_pause () at ../sysdeps/unix/sysv/linux/pause.c:29\n"
    "#1  0x000055b9643a7171 in wait_here (n=n@entry=0) at c.c:4\n"
    "#2  wait_here (n=1) at c.c:4\n"
    "#3  0x000055b9643a719c in ?? () from /usr/lib/libx.so\n"
    "\n"
    "Thread 2 (Thread 0x7f241acc96c0 (LWP 5078) \"c\"):\n"
    "#0  0x00007f241ada0df2 in read () from /lib/libc.so.6\n"
    "[Inferior 1 (process 5076) detached]\n";

StackOfRank stack_of(std::uint32_t rank, const std::string& host, const std::string& python,
                     const std::string& native = "") {
  return {host, {rank, 100 + rank, "p", "", python, native, ""}};
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

TEST_CASE("faulthandler's text becomes threads and frames, the main thread last") {
  const auto threads = python_stacks(kPython);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].is_idle);
  REQUIRE(main_of(threads) == &threads[1]);
  CHECK(threads[1].frames ==
        Frames{"/tmp/w.py:9 in elsewhere", "/tmp/w.py:8 in elsewhere", "/tmp/w.py:10 in <module>"});
}

TEST_CASE("where faulthandler leaves threads out, the thread that had the signal is the main one") {
  const auto threads = python_stacks(
      "Current thread 0x1 (most recent call first):\n"
      "  File \"a\", line 1 in f\n\nThread 0x2 (most recent call "
      "first):\n  File \"b\", line 2 in g\n...\n");
  REQUIRE(threads.size() == 2);
  CHECK(main_of(threads) == &threads[0]);
}

TEST_CASE("eu-stack's frames have a name, or the name of their library") {
  const auto threads = native_stacks(kElfutils);
  REQUIRE(threads.size() == 2);
  CHECK(main_of(threads) == &threads[0]);
  CHECK(threads[0].frames == Frames{"__futex_wait (libc.so.6)", "?? (python3.11)",
                                    "hv::(anonymous namespace)::wait (c)"});
  CHECK(threads[1].is_idle);
}

TEST_CASE("gdb's frames have no arguments, and their line in the source") {
  const auto threads = native_stacks(kGdb);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].frames == Frames{"__libc_pause at pause.c:29", "wait_here at c.c:4",
                                    "wait_here at c.c:4", "?? (libx.so)"});
  CHECK(threads[1].frames == Frames{"read (libc.so.6)"});
}

TEST_CASE("native frames inside of Python's innermost frame are kept") {
  CHECK(below_python({"a (libc.so.6)", "?? (python3.11)", "_PyEval_EvalFrameDefault (python3.11)",
                      "main (python3.11)"}) == Frames{"a (libc.so.6)"});
  CHECK(below_python({"a (libc.so.6)", "b (x)"}).empty());
}

TEST_CASE("equal stacks are one, with all ranks that stand there") {
  const std::string other = replaced(kPython, "line 9 in elsewhere", "line 19 in apart");
  const auto texts =
      stack_groups({stack_of(0, "a", kPython), stack_of(3, "b", other), stack_of(1, "b", kPython)});
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] ==
        "ranks 0-1 on hosts a,b stand in (Python, innermost last):\n"
        "      /tmp/w.py:10 in <module>\n"
        "      /tmp/w.py:8 in elsewhere\n"
        "      /tmp/w.py:9 in elsewhere\n"
        "      other threads: 1 idle");
  CHECK(texts[1].find("rank 3 on host b stands in (Python") == 0);
  CHECK(texts[1].find("w.py:19 in apart") != std::string::npos);
}

TEST_CASE("addresses, pids and thread numbers never make two stacks different") {
  std::mt19937 random(20261127);
  for (int round = 0; round < 50; ++round) {
    std::vector<StackOfRank> stacks;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      const std::string number = std::to_string(1000 + random() % 9000);
      const std::string address = "0x" + number + "f0d06518040";
      stacks.push_back(rank % 2
                           ? stack_of(rank, "a", replaced(kPython, "0x00007f0d06518040", address))
                           : stack_of(rank, "a", "",
                                      replaced(replaced(kElfutils, "5076", number),
                                               "0x00007f241ada0df2", address)));
      stacks.back().stacks.pid = random() % 30000;
    }
    std::shuffle(stacks.begin(), stacks.end(), random);
    const auto texts = stack_groups(stacks);
    REQUIRE(texts.size() == 2);
    CHECK(texts[0].find("ranks 0,2,4,6 on host a stand in (C") == 0);
    CHECK(texts[1].find("ranks 1,3,5,7 on host a stand in (Python") == 0);
  }
}

TEST_CASE("a long stack keeps its innermost frames, and repeated frames are one line") {
  std::string deep = "Current thread 0x1 (most recent call first):\n";
  for (int i = 0; i < 90; ++i) deep += "  File \"f.py\", line " + std::to_string(i) + " in f\n";
  const std::string text = stack_groups({stack_of(0, "a", deep)}).at(0);
  CHECK(text.find("... 60 more\n      f.py:29 in f\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 31);
  std::string same = "Current thread 0x1 (most recent call first):\n";
  for (int i = 0; i < 90; ++i) same += "  File \"f.py\", line 7 in f\n";
  CHECK(stack_groups({stack_of(0, "a", same)}).at(0).find("f.py:7 in f (90 times)") !=
        std::string::npos);
}

TEST_CASE("a process without a known stack is reported with the reason") {
  StackOfRank unknown = stack_of(2, "a", "");
  unknown.stacks.problem = "install gdb";
  unknown.stacks.state = "is stopped (SIGSTOP)";
  const auto texts = stack_groups({unknown});
  REQUIRE(texts.size() == 1);
  CHECK(texts[0] == "rank 2 on host a (p, pid 102) is stopped (SIGSTOP): install gdb");
}

TEST_CASE("further processes of a rank come after all first ones") {
  StackOfRank worker =
      stack_of(0, "a", replaced(kPython, "line 9 in elsewhere", "line 7 in fetch"));
  worker.stacks.pid = 7;
  const auto texts = stack_groups({stack_of(0, "a", kPython), worker, stack_of(1, "a", kPython)});
  REQUIRE(texts.size() == 2);
  CHECK(texts[1].find("another process (pid 7) of rank 0 on host a stands in") == 0);
}

TEST_CASE("processes that Python's multiprocessing runs for itself are left out beside a rank") {
  const std::string library = "/usr/lib/python3.14/multiprocessing/";
  const auto process = [](std::uint32_t pid, const std::string& innermost) {
    StackOfRank stack = stack_of(0, "a",
                                 "Current thread 0x1 (most recent call first):\n" + innermost +
                                     "  File \"<string>\", line 1 in <module>\n");
    stack.stacks.pid = pid;
    return stack;
  };
  const auto frame = [](const std::string& file, const std::string& function) {
    return "  File \"" + file + "\", line 7 in " + function + "\n";
  };
  const StackOfRank tracker = process(8, frame(library + "resource_tracker.py", "main"));
  const StackOfRank server = process(9, frame("/usr/lib/python3.14/selectors.py", "select") +
                                            frame(library + "forkserver.py", "main"));
  const StackOfRank worker =
      process(10, frame("w.py", "work") + frame(library + "forkserver.py", "_serve_one") +
                      frame(library + "forkserver.py", "main"));
  const auto texts = stack_groups({stack_of(0, "a", kPython), tracker, server, worker});
  REQUIRE(texts.size() == 2);
  CHECK(texts[1].find("another process (pid 10)") == 0);
  CHECK(stack_groups({tracker}).size() == 1);  // a rank's only process
}

TEST_CASE("any bytes are parsed, and the text stays short") {
  std::mt19937 random(7);
  const std::string parts[] = {kPython, kElfutils, kGdb,    "#",         "#1 ",
                               "TID ",  "Thread ", "...\n", "  File \"", "\", line ",
                               " - ",   "\n",      "(",     " at ",      "0x"};
  for (int round = 0; round < 500; ++round) {
    std::string python, native;
    for (int i = 0; i < 8; ++i) {
      const std::string part = parts[random() % std::size(parts)];
      python += part.substr(random() % (part.size() + 1));
      native += part.substr(0, random() % (part.size() + 1));
      native += static_cast<char>(random());
    }
    for (const std::string& text : stack_groups({stack_of(0, "a", python, native)}))
      CHECK(text.size() < 40000);
  }
  std::vector<StackOfRank> many;
  for (std::uint32_t rank = 0; rank < 300; ++rank)
    many.push_back(
        stack_of(rank, "a", replaced(kPython, "line 9", "line " + std::to_string(rank + 90))));
  CHECK(stack_groups(many).size() == kMostGroups + 1);
}
