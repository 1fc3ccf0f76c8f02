// The bootstrap over real shells: every login shell, noise, bad folders, many at once.
// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>
#include <unistd.h>

#include "launcher/spawn/exec_spawner.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

std::string homes(const TemporaryFolder& folder, const std::string& more = "") {
  return "unset XDG_CACHE_HOME XDG_RUNTIME_DIR; export HOME=" + folder.folder("home") +
         " TMPDIR=" + folder.folder("tmp") + "; " + more;
}

std::string hello(asio::io_context& io, Spawner& spawner, const std::string& host = "b") {
  const auto channel = run(io, spawner.start({host, "", 0, "", false}));
  return run(io, read_exactly(*channel, 5));
}

// A file system of its own over a folder; root only.
class Mount {
 public:
  Mount(std::string folder, unsigned long flags, const std::string& options)
      : folder_(std::move(folder)) {
    works = ::mount("tmpfs", folder_.c_str(), "tmpfs", flags, options.c_str()) == 0;
  }
  ~Mount() {
    if (works) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  void remount(unsigned long flags) {
    REQUIRE(::mount("tmpfs", folder_.c_str(), "tmpfs", flags | MS_REMOUNT, "") == 0);
  }
  bool works = false;

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE("every login shell starts the agent, and finds it the second time") {
  for (const std::string shell :
       {"sh", "bash", "dash", "zsh", "csh", "tcsh", "fish", "busybox sh"}) {
    if (!is_installed(shell.substr(0, shell.find(' ')))) continue;
    CAPTURE(shell);
    const TemporaryFolder folder;
    const FakeRsh rsh(folder, shell, homes(folder));
    asio::io_context io;
    const auto spawner = make_spawner(options_for(folder, rsh.command()));
    CHECK(hello(io, *spawner) == "HELLO");
    const std::string copy = folder / "home/.cache/hvrun/agent-0.1-test";
    CHECK(file_content(copy) == kStandIn);
    struct stat first {
    }, second{};
    REQUIRE(::stat(copy.c_str(), &first) == 0);
    CHECK((first.st_mode & 07777) == 0700);
    CHECK(hello(io, *spawner) == "HELLO");
    REQUIRE(::stat(copy.c_str(), &second) == 0);
    CHECK(first.st_ino == second.st_ino);  // not copied again
    CHECK(std::distance(std::filesystem::directory_iterator(folder / "home/.cache/hvrun"), {}) ==
          1);
  }
}

TEST_CASE("start-up files that print on both streams do not disturb the start") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "bash",
                    homes(folder, "printf 'Welcome to b\\nno newline'; echo grumble >&2"));
  asio::io_context io;
  const auto spawner = make_spawner(options_for(folder, rsh.command()));
  CHECK(hello(io, *spawner) == "HELLO");
}

TEST_CASE("start-up files that read some lines of standard input do not disturb the start") {
  for (const std::string reads : {"read x", "read x; read y", "head -n 1 >/dev/null"}) {
    CAPTURE(reads);
    const TemporaryFolder folder;
    const FakeRsh rsh(folder, "bash", homes(folder, reads));
    asio::io_context io;
    const auto spawner = make_spawner(options_for(folder, rsh.command()));
    CHECK(hello(io, *spawner) == "HELLO");
    CHECK(hello(io, *spawner) == "HELLO");  // with the copy
  }
}

TEST_CASE("start-up files that print standard input to its end are an error at once") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "bash", homes(folder, "cat"));
  asio::io_context io;
  const auto spawner = make_spawner(options_for(folder, rsh.command()));
  const Error error = start_error(io, *spawner, {"b", "", 0, "", false});
  CHECK(error.kind() == ErrorKind::kStart);  // not kTimeout
  CHECK(contains(error.what(), "read standard input to its end"));
  CHECK(contains(error.hint(), "[ -t 0 ] || return"));
}

TEST_CASE("start-up files that swallow standard input are named when the time is over") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "bash", homes(folder, "cat >/dev/null"));
  asio::io_context io;
  SpawnOptions options = options_for(folder, rsh.command());
  options.start_timeout = std::chrono::seconds(2);
  const Error error = start_error(io, *make_spawner(options), {"b", "", 0, "", false});
  CHECK(error.kind() == ErrorKind::kTimeout);
  CHECK(contains(error.hint(), "read standard input"));
}

TEST_CASE("what start-up files print is shown when the start fails") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", "echo this account is closed; echo go away >&2; exit 7");
  asio::io_context io;
  const auto spawner = make_spawner(options_for(folder, rsh.command()));
  const Error error = start_error(io, *spawner, {"b", "", 0, "", false});
  CHECK(error.kind() == ErrorKind::kStart);
  for (const char* part : {"host b", "exit code 7", "this account is closed", "go away"})
    CHECK(contains(error.what(), part));
  CHECK_FALSE(error.hint().empty());
}

TEST_CASE("a host that prints without end is an error") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", "exec yes noise");
  asio::io_context io;
  const auto spawner = make_spawner(options_for(folder, rsh.command()));
  CHECK(contains(start_error(io, *spawner, {"b", "", 0, "", false}).what(), "print without end"));
}

TEST_CASE("a host that says nothing is a timeout that names host and phase") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", "exec cat >/dev/null");
  asio::io_context io;
  SpawnOptions options = options_for(folder, rsh.command());
  options.start_timeout = std::chrono::milliseconds(300);
  const auto spawner = make_spawner(options);
  const Error error = start_error(io, *spawner, {"b", "", 0, "", false});
  CHECK(error.kind() == ErrorKind::kTimeout);
  CHECK(contains(error.what(), "start the agent on host b"));
  CHECK(contains(error.what(), "0.3 s"));
}

TEST_CASE("the first folder that can hold and run the agent is taken") {
  const TemporaryFolder folder;
  const std::string cache = folder.folder("cache");
  write_file(folder / "file", "");
  asio::io_context io;
  SUBCASE("XDG_CACHE_HOME") {
    const FakeRsh rsh(folder, "sh", homes(folder, "export XDG_CACHE_HOME=" + cache));
    CHECK(hello(io, *make_spawner(options_for(folder, rsh.command()))) == "HELLO");
    CHECK(std::filesystem::exists(cache + "/hvrun/agent-0.1-test"));
  }
  SUBCASE("the run-time folder, when the home cannot") {
    const FakeRsh rsh(
        folder, "sh",
        homes(folder, "export HOME=" + folder / "file" + " XDG_RUNTIME_DIR=" + cache));
    CHECK(hello(io, *make_spawner(options_for(folder, rsh.command()))) == "HELLO");
    CHECK(std::filesystem::exists(cache + "/hvrun/agent-0.1-test"));
  }
  SUBCASE("a private folder in the temporary directory, when there is no home") {
    const FakeRsh rsh(folder, "sh", homes(folder, "unset HOME"));
    CHECK(hello(io, *make_spawner(options_for(folder, rsh.command()))) == "HELLO");
    struct stat info {};
    REQUIRE(::stat((folder / ("tmp/hvrun-" + std::to_string(::getuid()))).c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
  }
}

TEST_CASE("a folder that is a link or somebody else's holds no agent") {
  const TemporaryFolder folder;
  const std::string elsewhere = folder.folder("elsewhere");
  folder.folder("home/.cache");
  write_file(elsewhere + "/agent-0.1-test", "#!/bin/sh\nprintf EVIL\n", 0755);
  std::filesystem::create_directory_symlink(elsewhere, folder / "home/.cache/hvrun");
  const FakeRsh rsh(folder, "sh", homes(folder));
  asio::io_context io;
  CHECK(hello(io, *make_spawner(options_for(folder, rsh.command()))) == "HELLO");
  CHECK(std::filesystem::exists(folder /
                                ("tmp/hvrun-" + std::to_string(::getuid()) + "/agent-0.1-test")));
}

TEST_CASE("no folder at all: an error with each folder's reason") {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  const FakeRsh rsh(folder, "sh",
                    "unset XDG_CACHE_HOME XDG_RUNTIME_DIR; export HOME=" + folder / "file" +
                        " TMPDIR=" + folder / "file");
  asio::io_context io;
  const Error error =
      start_error(io, *make_spawner(options_for(folder, rsh.command())), {"b", "", 0, "", false});
  CHECK(contains(error.what(), "no folder there"));
  CHECK(contains(error.what(), "file/.cache/hvrun: "));
  CHECK(contains(error.what(), "file/hvrun-"));
  CHECK(contains(error.hint(), "XDG_CACHE_HOME"));
}

TEST_CASE("full, read-only and noexec homes are passed over") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: mounting needs root");
    return;
  }
  const TemporaryFolder folder;
  const std::string home = folder.folder("home");
  asio::io_context io;
  SpawnOptions options = options_for(folder, FakeRsh(folder, "sh", homes(folder)).command());
  write_file(options.agent_program, std::string(kStandIn) + "exit\n" + std::string(200 << 10, '#'),
             0755);
  const std::string in_tmp =
      folder / ("tmp/hvrun-" + std::to_string(::getuid()) + "/agent-0.1-test");
  SUBCASE("full: the copy breaks off in the middle") {
    Mount mount(home, 0, "size=64k");
    REQUIRE(mount.works);
    CHECK(hello(io, *make_spawner(options)) == "HELLO");
    CHECK(std::filesystem::exists(in_tmp));
    CHECK(std::filesystem::is_empty(home + "/.cache/hvrun"));
  }
  SUBCASE("read-only") {
    Mount mount(home, MS_RDONLY, "");
    REQUIRE(mount.works);
    CHECK(hello(io, *make_spawner(options)) == "HELLO");
    CHECK(std::filesystem::exists(in_tmp));
  }
  SUBCASE("noexec") {
    Mount mount(home, MS_NOEXEC, "");
    REQUIRE(mount.works);
    CHECK(hello(io, *make_spawner(options)) == "HELLO");
    CHECK(std::filesystem::is_empty(home + "/.cache/hvrun"));
  }
  SUBCASE("full, and nothing else: the reason is told") {
    Mount mount(home, 0, "size=64k"), temporary(folder / "tmp", 0, "size=64k");
    REQUIRE(temporary.works);
    const Error error = start_error(io, *make_spawner(options), {"b", "", 0, "", false});
    CHECK(contains(error.what(), "No space left on device"));
  }
}

TEST_CASE("eight launches at once into one home all start, and leave one file") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", homes(folder));
  SpawnOptions options = options_for(folder, rsh.command());
  write_file(options.agent_program, std::string(kStandIn) + "exit\n" + std::string(1 << 20, '#'),
             0755);
  asio::io_context io;
  const auto spawner = make_spawner(options);
  int hellos = 0;
  for (int i = 0; i < 8; ++i) {
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          HostTarget host{"b", "", 0, "", false};
          const auto channel = co_await spawner->start(host);
          if (co_await read_exactly(*channel, 5) == "HELLO") ++hellos;
        },
        asio::detached);
  }
  io.run();
  CHECK(hellos == 8);
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "home/.cache/hvrun"), {}) == 1);
}

TEST_CASE("a program that is no agent is not started") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", homes(folder));
  SpawnOptions options = options_for(folder, rsh.command());
  write_file(options.agent_program, "#!/bin/sh\necho something else\n", 0755);
  asio::io_context io;
  CHECK(contains(start_error(io, *make_spawner(options), {"b", "", 0, "", false}).what(),
                 "something else"));
}

TEST_CASE("another machine: an error that names both, and nothing is copied") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", homes(folder));
  SpawnOptions options = options_for(folder, rsh.command());
  std::string elf(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0",
      18);
  elf += std::string("\x16\0", 2) + std::string(2000, 'x');  // s390x, in little endian for the test
  write_file(options.agent_program, elf, 0755);
  asio::io_context io;
  const Error error = start_error(io, *make_spawner(options), {"b", "", 0, "", false});
  CHECK(contains(error.what(), "s390x"));
  CHECK(contains(error.what(), "machine, and this hvrun"));
  CHECK_FALSE(std::filesystem::exists(folder / "home/.cache/hvrun/agent-0.1-test"));
}

TEST_CASE("the agent's environment and umask are the login's own") {
  const TemporaryFolder folder;
  const FakeRsh rsh(folder, "sh", homes(folder, "umask 027; export hv_kept=1"));
  SpawnOptions options = options_for(folder, rsh.command());
  write_file(options.agent_program,
             "#!/bin/sh\n[ \"$1\" = --version ] && echo hvrun-agent && exit\numask; env | grep -c "
             "'^hv_'\n",
             0755);
  asio::io_context io;
  const auto spawner = make_spawner(options);
  const auto channel = run(io, spawner->start({"b", "", 0, "", false}));
  CHECK(run(io, read_exactly(*channel, 100)) == "0027\n1\n");
}

TEST_CASE("elf_machine reads the machine as uname names it") {
  CHECK(elf_machine("#!/bin/sh") == "");
  CHECK(elf_machine(file_content("/proc/self/exe")) != "");
  std::string arm(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\xb7\0",
      20);
  CHECK(elf_machine(arm) == "aarch64");
}
