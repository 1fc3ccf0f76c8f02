// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/program.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstddef>

#include "launcher/probes/elf_file.h"
#include "launcher/probes/libraries.h"
#include "tests/unit/probes/asked.h"

namespace hv::launcher {
namespace {

using tests::asked;
using tests::request_for;
using tests::TemporaryFolder;
using tests::write_file;

constexpr mode_t kExecutable = 0755;

wire::ProgramFacts told_of(std::vector<std::string> argv, const std::string& directory) {
  return asked("program", request_for(std::move(argv), directory)).programs.at(0);
}

// A copy of a program with each `from` in it turned to `to`, as long. False: it has none.
bool change(const std::string& program, const std::string& path, const std::string& from,
            const std::string& to) {
  std::string bytes = tests::file_content(program);
  std::size_t at = bytes.find(from);
  if (at == std::string::npos) return false;
  for (; at != std::string::npos; at = bytes.find(from, at)) bytes.replace(at, to.size(), to);
  write_file(path, bytes, kExecutable);
  return true;
}

TEST_CASE("program: a missing one is reported with the message of a launch") {
  const TemporaryFolder folder;
  const auto facts = told_of({"./nosuch"}, folder.path());
  CHECK(facts.path == "");
  CHECK(facts.problem ==
        "find the program ./nosuch in " + folder.path() + ": No such file or directory");
  CHECK(facts.advice ==
        "check that it lies at that path on every host, and is executable (chmod +x)");
  write_file(folder / "train.sh", "echo\n");
  CHECK(told_of({"./train.sh"}, folder.path()).advice == "sh ./train.sh");
}

TEST_CASE("program: a missing directory is left to the probe of directories") {
  const TemporaryFolder folder;
  const auto facts = told_of({"true"}, folder / "none");
  CHECK(facts.path == "");
  CHECK(facts.problem == "");
}

TEST_CASE("program: it is found along the PATH that -x gives it") {
  const TemporaryFolder folder;
  write_file(folder / "bin/train", "#!/bin/sh\n", kExecutable);
  wire::CheckRequest request = request_for({"train"}, "/");
  CHECK(asked("program", request).programs[0].path == "");
  request.programs[0].environment = {"PATH=" + (folder / "bin")};
  const auto facts = asked("program", request).programs[0];
  CHECK(facts.path == folder / "bin/train");
  CHECK(facts.interpreter == "/bin/sh");
  CHECK(facts.problem == "");
}

TEST_CASE("program: equal contents have equal digests, and others do not") {
  const TemporaryFolder folder;
  write_file(folder / "a", "#!/bin/sh\n", kExecutable);
  write_file(folder / "b", "#!/bin/sh\n", kExecutable);
  write_file(folder / "c", "#!/bin/sh\n\n", kExecutable);
  CHECK(told_of({"./a"}, folder.path()).digest != "");
  CHECK(told_of({"./a"}, folder.path()).digest == told_of({"./b"}, folder.path()).digest);
  CHECK(told_of({"./a"}, folder.path()).digest != told_of({"./c"}, folder.path()).digest);
}

TEST_CASE("program: its own loader lists its libraries, and missing ones are reported") {
  const TemporaryFolder folder;
  const auto whole = told_of({"/bin/true"}, "/");
  CHECK(whole.problem == "");
  CHECK(whole.missing_libraries.empty());
  if (!change("/bin/true", folder / "program", "libc.so.6", "libq.so.6")) {
    MESSAGE("/bin/true has no libc.so.6 here");
    return;
  }
  CHECK_FALSE(whole.libraries.empty());
  const auto facts = told_of({"./program"}, folder.path());
  CHECK(facts.missing_libraries == std::vector<std::string>{"libq.so.6"});
  CHECK(facts.problem == "");
  // All of them, though a loader may stop at the first.
  if (!change("/bin/bash", folder / "two", "libtinfo.so.6", "libqinfo.so.6")) return;
  REQUIRE(change(folder / "two", folder / "two", "libc.so.6", "libq.so.6"));
  CHECK(told_of({"./two"}, folder.path()).missing_libraries ==
        std::vector<std::string>{"libqinfo.so.6", "libq.so.6"});
}

TEST_CASE("program: one of another architecture, or without its loader, cannot be executed") {
  const TemporaryFolder folder;
  std::string bytes = tests::file_content("/bin/true");
  bytes[offsetof(Elf64_Ehdr, e_machine)] = EM_68K;
  write_file(folder / "foreign", bytes, kExecutable);
  const auto foreign = told_of({"./foreign"}, folder.path());
  CHECK(foreign.problem.find("it is built for ELF machine 4, and this host is ") !=
        std::string::npos);
  write_file(folder / "cut", bytes.substr(0, 30), kExecutable);
  CHECK(told_of({"./cut"}, folder.path()).problem.find("its header is cut off") !=
        std::string::npos);
  if (!change("/bin/true", folder / "program", "/ld-linux", "/ld-other")) return;
  const auto facts = told_of({"./program"}, folder.path());
  CHECK(facts.problem.find("its loader ") != std::string::npos);
  CHECK(facts.problem.find("No such file or directory") != std::string::npos);
}

TEST_CASE("program: only its loader is run") {
  const TemporaryFolder folder;
  write_file(folder / "program", "#!/bin/sh\ntouch " + (folder / "ran") + "\n", kExecutable);
  CHECK(told_of({"./program"}, folder.path()).problem == "");
  // A "loader" that any program may name.
  const auto elf = read_elf("/bin/true");
  REQUIRE(elf.has_value());
  const std::string own = (folder / "x") + '\0';
  write_file(folder / "x", "#!/bin/sh\ntouch " + (folder / "ran") + "\n", kExecutable);
  if (own.size() <= elf->loader.size()) {
    REQUIRE(change("/bin/true", folder / "other", elf->loader.substr(0, own.size()), own));
    CHECK(told_of({"./other"}, folder.path()).libraries.empty());
    CHECK(told_of({"./other"}, folder.path()).problem == "");
  }
  CHECK_FALSE(std::filesystem::exists(folder / "ran"));
}

TEST_CASE("program: the script that Python would run is inspected, too") {
  const TemporaryFolder folder;
  write_file(folder / "python3", "#!/bin/sh\n", kExecutable);
  write_file(folder / "train.py", "import torch\n");
  const auto there = told_of({"./python3", "-u", "train.py", "x"}, folder.path());
  CHECK(there.script == folder / "train.py");
  CHECK(there.script_digest != "");
  CHECK(there.problem == "");
  const auto missing = told_of({"./python3", "other.py"}, folder.path());
  CHECK(missing.problem ==
        "open the script other.py in " + folder.path() + ": No such file or directory");
  CHECK(told_of({"./python3", "-m", "other.py"}, folder.path()).problem == "");
}

TEST_CASE("program: a wrapper is replaced by the program that it starts, or reported as missing") {
  const TemporaryFolder folder;
  const std::string directory = folder.path();
  const auto told = [&](const std::vector<std::string>& argv) {
    return asked("program", request_for(argv, directory)).programs.at(0);
  };
  CHECK(told({"nice", "-n", "1", "env", "A=1", "/bin/true"}).path == "/bin/true");
  CHECK(told({"nice", "-n", "1", "./none"}).problem.find("./none") != std::string::npos);
  CHECK(told({"/none/nice", "/bin/true"}).problem.find("/none/nice") != std::string::npos);
}

TEST_CASE(
    "program: a script is executed by what its first line names, with env by what that finds") {
  const TemporaryFolder folder;
  const std::string path = folder / "bin";
  write_file(folder / "bin/python3", "", kExecutable);
  write_file(folder / "plain", "#! /bin/sh -e\n");
  write_file(folder / "env", "#!/usr/bin/env -S A=1 python3 -u\n");
  write_file(folder / "relative", "#!bin/python3\n");
  CHECK(executed_file(folder / "plain", "/", path) == "/bin/sh");
  CHECK(executed_file(folder / "env", "/", path) == folder / "bin/python3");
  CHECK(executed_file(folder / "relative", folder.path(), path) == folder / "bin/python3");
  CHECK(executed_file("/bin/true", "/", path) == "/bin/true");
}

TEST_CASE("program: a script whose interpreter env does not find cannot be executed") {
  const TemporaryFolder folder;
  write_file(folder / "train", "#!/usr/bin/env no-such-python\n", kExecutable);
  const auto facts = told_of({"./train"}, folder.path());
  CHECK(facts.problem == "execute " + folder.path() +
                             "/./train: its first line has env look for no-such-python: not found "
                             "in PATH (/usr/local/bin:/usr/bin:/bin)");
  CHECK(facts.path != "");
}

TEST_CASE("program: the lists of glibc's and musl's loaders are parsed") {
  const LibraryList list = parse_library_list(
      "\tlinux-vdso.so.1 (0x00007f9ce66e3000)\n"
      "\tlibzzz.so => not found\n"
      "\tlibm.so.6 => /lib/libm.so.6 (0x00007f9ce64e8000)\n"
      "\tlibc.so.6 => /lib/libc.so.6 (0x00007f9ce64e8000)\n"
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f9ce66e5000)\n"
      "./m: /lib/x/libc.so.6: version `GLIBC_2.38' not found (required by ./m)\n"
      "./m: /lib/x/libc.so.6: version `GLIBC_2.38' not found (required by ./libx.so)\n"
      "./m: error while loading shared libraries: liby.so: cannot open shared object file\n"
      "Error loading shared library libz.so: No such file or directory (needed by ./m)\n");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(list.libraries == Pairs{{"libc.so.6", "/lib/libc.so.6"}, {"libm.so.6", "/lib/libm.so.6"}});
  CHECK(list.missing ==
        std::vector<std::string>{"libzzz.so", "GLIBC_2.38 of libc.so.6", "liby.so", "libz.so"});
}

TEST_CASE("program: an architecture runs its own programs and those of its 32-bit variant") {
  CHECK(machine_runs("x86_64", "x86_64"));
  CHECK(machine_runs("x86_64", "i386"));
  CHECK(machine_runs("i686", "i386"));
  CHECK(machine_runs("aarch64", "arm"));
  CHECK_FALSE(machine_runs("x86_64", "aarch64"));
  CHECK_FALSE(machine_runs("i686", "x86_64"));
  CHECK_FALSE(read_elf("/etc/passwd").has_value());
}

}  // namespace
}  // namespace hv::launcher
