// Tests of launcher/agent/postmortem/core_file: where the kernel has put a core.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/core_file.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "src/base/clock.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;

namespace {

const DeadProcess kDead{41, SIGSEGV, true, "./bin/train", "/work/run", 1000};

// A fake /proc, and the working directory of the process.
struct CoreHost {
  hv::tests::TemporaryFolder folder;
  DeadProcess dead = kDead;
  explicit CoreHost(const std::string& pattern, const std::string& uses_pid = "0") {
    const std::string kernel = folder.path() + "/proc/sys/kernel/";
    std::filesystem::create_directories(kernel);
    std::ofstream(kernel + "core_pattern") << pattern << "\n";
    std::ofstream(kernel + "core_uses_pid") << uses_pid << "\n";
    dead.directory = folder.path();
    dead.died_s = hv::wall_clock_ns() / 1'000'000'000;
  }
  std::string words(std::uint64_t limit = 1) const {
    return describe_core(dead, limit, folder.path());
  }
};

}  // namespace

TEST_CASE("a core pattern is expanded as in core(5), with a star for unknown properties") {
  const auto glob = [](const std::string& pattern, bool uses_pid = false) {
    return core_glob(pattern, uses_pid, kDead, "node1");
  };
  CHECK(glob("core") == "/work/run/core");
  CHECK(glob("core", true) == "/work/run/core.41");
  CHECK(glob("core.%p", true) == "/work/run/core.41");
  CHECK(glob("/cores/%h/%f-%s-%%") == "/cores/node1/train-11-%");
  CHECK(glob("/cores/%e.%t.%u.%i.%E") == "/cores/*.*.*.*.*");
  CHECK(glob("/cores/x%") == "/cores/x");
  CHECK(glob("/co[re]s/*") == "/co\\[re\\]s/\\*");
}

TEST_CASE("an existing core file is reported, the newest of several candidates") {
  CoreHost host("core.%e.%p");
  std::ofstream(host.folder.path() + "/core.train.41") << "new";
  std::ofstream(host.folder.path() + "/core.main.41") << "old";
  std::filesystem::last_write_time(
      host.folder.path() + "/core.main.41",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(30));
  CHECK(host.words() == "its core file is " + host.folder.path() + "/core.train.41");
}

TEST_CASE("an old core file is not reported for a process that has just died") {
  CoreHost host("core");
  std::ofstream(host.folder.path() + "/core") << "old";
  std::filesystem::last_write_time(
      host.folder.path() + "/core",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(30));
  CHECK(host.words().find("its core file was not found as " + host.folder.path() + "/core") == 0);
}

TEST_CASE("a core that is piped to a program is reported with how to get it") {
  CoreHost systemd("|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h");
  CHECK(systemd.words() ==
        "its core was piped to /usr/lib/systemd/systemd-coredump: 'coredumpctl info 41' there "
        "shows it");
  CoreHost apport("|/usr/share/apport/apport -p%p -s%s");
  CHECK(apport.words().find("/var/crash") != std::string::npos);
  CoreHost other("|/bin/own\x1b");
  CHECK(other.words() == "its core was piped to /bin/own\\x1b there");
}

TEST_CASE("a missing core file is explained only where its limit is the reason") {
  CoreHost host("core");
  host.dead.has_dumped = false;
  CHECK(host.words(0).find("it left no core file, as RLIMIT_CORE is 0: start it as sh -c") == 0);
  CHECK(host.words(1).empty());
  host.dead.signal = SIGTERM;
  CHECK(host.words(0).empty());
  CoreHost piped("|/bin/x");
  piped.dead.has_dumped = false;
  CHECK(piped.words(0).empty());
}
