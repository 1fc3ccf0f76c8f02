// Tests of launcher/agent/postmortem/held_text: whose programs may hold text back?
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/held_text.h"

#include <doctest/doctest.h>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;
using namespace std::string_literals;

namespace {

// A /proc of processes that a test names.
struct FakeProc {
  hv::tests::TemporaryFolder folder;

  // exe: its executable; empty: not readable. children: pids, a blank behind each.
  void add(pid_t pid, const std::string& exe, const std::string& children = "",
           const std::string& variables = "") {
    const std::string number = std::to_string(pid);
    const std::filesystem::path directory = folder.path() + "/" + number;
    std::filesystem::create_directories(directory / "task" / number);
    if (!exe.empty()) std::filesystem::create_symlink(exe, directory / "exe");
    std::ofstream(directory / "task" / number / "children") << children;
    std::ofstream(directory / "environ") << variables;
  }
  bool says(pid_t rank) const { return may_hold_text(rank, folder.path()); }
};

bool holds(const std::string& exe, const std::string& variables = "") {
  FakeProc proc;
  proc.add(10, exe, "", variables);
  return proc.says(10);
}

bool holds_with_child(const std::string& exe, const std::string& childs_exe) {
  FakeProc proc;
  proc.add(10, exe, "11 ");
  proc.add(11, childs_exe);
  return proc.says(10);
}

}  // namespace

TEST_CASE("a program may hold text back, shells and interpreters do not") {
  CHECK(holds("/home/ada/train"));
  CHECK(holds("/home/ada/train (deleted)"));  // compiled again meanwhile
  CHECK(holds("/home/ada/3d"));
  CHECK(holds("/home/ada/bashful"));
  CHECK(holds("/home/ada/R_model"));
  for (const char* exe :
       {"/usr/bin/python3.11", "/opt/conda/bin/python", "/usr/bin/python3.11-dbg", "/usr/bin/bash",
        "/usr/bin/dash", "/usr/bin/perl", "/usr/lib/R/bin/exec/R", "/usr/bin/bash (deleted)"})
    CHECK_FALSE(holds(exe));
}

TEST_CASE("a wrapper is judged by the programs that it runs") {
  CHECK(holds_with_child("/usr/bin/timeout", "/home/ada/train"));
  CHECK_FALSE(holds_with_child("/usr/bin/timeout", "/usr/bin/python3.11"));
  CHECK_FALSE(holds_with_child("/usr/bin/bash", "/usr/bin/sleep"));  // a script that waits
  FakeProc proc;
  proc.add(10, "/usr/bin/time", "11 12 ");
  proc.add(11, "/home/ada/train");
  proc.add(12, "/usr/bin/timeout", "13 ");
  proc.add(13, "/usr/bin/python3");
  CHECK_FALSE(proc.says(10));
}

TEST_CASE("a program that stdbuf has write at once holds nothing back") {
  CHECK_FALSE(holds("/home/ada/train", "A=1\0_STDBUF_O=L\0B=2\0"s));
  CHECK_FALSE(holds("/home/ada/train", "_STDBUF_O=0\0"s));
  CHECK(holds("/home/ada/train", "_STDBUF_O=4096\0"s));
}

TEST_CASE("nothing is said of a process that cannot be read") {
  CHECK_FALSE(holds(""));
  CHECK_FALSE(holds_with_child("/home/ada/train", ""));
  CHECK_FALSE(FakeProc().says(10));
}
