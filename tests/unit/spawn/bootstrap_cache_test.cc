// What lies in a host's cache already: run only if it is whole and can run there; old copies go.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include "launcher/spawn/exec_spawner.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

constexpr const char* kShells[] = {"sh",  "bash", "dash", "zsh",
                                   "csh", "tcsh", "fish", "busybox sh"};

bool is_there(const std::string& shell) { return is_installed(shell.substr(0, shell.find(' '))); }

// `uname` says what the test wants.
std::string host_of(const TemporaryFolder& folder, const std::string& machine = "") {
  std::string lines = "unset XDG_CACHE_HOME XDG_RUNTIME_DIR; export HOME=" + folder.folder("home") +
                      " TMPDIR=" + folder.folder("tmp");
  if (!machine.empty()) {
    write_file(folder.folder("bin") + "/uname", "#!/bin/sh\necho " + machine + "\n", 0755);
    lines += " PATH=" + folder / "bin" + ":$PATH";
  }
  return lines;
}

std::string cached_hello(const SpawnOptions& options) {
  asio::io_context io;
  const auto spawner = make_spawner(options);
  const auto channel = run(io, spawner->start({"b", "", 0, "", false}));
  return run(io, read_exactly(*channel, 5));
}

void set_last_use(const std::string& file, int days_ago) {
  const timespec then{::time(nullptr) - days_ago * 24L * 3600, 0};
  const timespec times[2] = {then, then};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

// An agent for a machine that no test runs on.
std::string s390_program() {
  std::string elf(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0",
      18);
  return elf + std::string("\x16\0", 2) + std::string(2000, 'x');
}

}  // namespace

TEST_CASE("a cached agent that is cut off is made anew, under every login shell") {
  for (const std::string shell : kShells) {
    if (!is_there(shell)) continue;
    CAPTURE(shell);
    const TemporaryFolder folder;
    const FakeRsh rsh(folder, shell, host_of(folder));
    const std::string copy = folder.folder("home/.cache/hvrun") + "/agent-0.1-test";
    write_file(copy, "#!/bin/sh\nkill -SEGV $$\n", 0700);
    CHECK(cached_hello(options_for(folder, rsh.command())) == "HELLO");
    CHECK(file_content(copy) == kStandIn);
  }
}

TEST_CASE("a cached agent is not run on another machine: the error names both") {
  for (const std::string shell : kShells) {
    if (!is_there(shell)) continue;
    CAPTURE(shell);
    const TemporaryFolder folder;
    const FakeRsh rsh(folder, shell, host_of(folder, "aarch64"));
    const SpawnOptions options = options_for(folder, rsh.command());
    write_file(options.agent_program, s390_program(), 0755);
    const std::string copy = folder.folder("home/.cache/hvrun") + "/agent-0.1-test";
    write_file(copy, s390_program(), 0700);
    asio::io_context io;
    const Error error = start_error(io, *make_spawner(options), {"b", "", 0, "", false});
    CHECK(contains(error.what(), "aarch64 machine"));
    CHECK(contains(error.what(), "built for s390x"));
    CHECK(contains(error.hint(), "hosts of one kind"));
  }
}

TEST_CASE("a new copy removes those of other builds that nobody has used for a month") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", host_of(folder));
  const std::string cache = folder.folder("home/.cache/hvrun");
  for (const std::string name : {"agent-old", ".agent-old.hv0123", "agent-recent", "not-ours"}) {
    write_file(cache + "/" + name, "x", 0700);
    set_last_use(cache + "/" + name, name == "agent-recent" ? 20 : 40);
  }
  CHECK(cached_hello(options_for(folder, rsh.command())) == "HELLO");
  CHECK_FALSE(std::filesystem::exists(cache + "/agent-old"));
  CHECK_FALSE(std::filesystem::exists(cache + "/.agent-old.hv0123"));
  for (const std::string name : {"agent-recent", "not-ours", "agent-0.1-test"})
    CHECK(std::filesystem::exists(cache + "/" + name));
}
