// A real sshd on loopback for tests, with its own keys and configuration, and an ssh client that
// knows only those.
// SPDX-License-Identifier: Apache-2.0
//
// The client's configuration is given to `ssh` by a wrapper that comes first in PATH, so that the
// user's own is never read; everything lies in one temporary folder. The login is the user that
// runs the tests.
#pragma once

#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/process/child.h"
#include "tests/unit/spawn/trial.h"

namespace hv::launcher::trial {

inline std::string user_name() { return ::getpwuid(::getuid())->pw_name; }

// Runs a command of a test's set-up to its end.
inline void must_run(const std::string& command) {
  INFO(command);
  REQUIRE(std::system((command + " >/dev/null 2>&1").c_str()) == 0);
}

inline std::uint16_t free_port() {
  UniqueFd listener;
  std::uint16_t port = 0;
  REQUIRE(listen_tcp(0, &listener, &port).ok());
  return port;
}

// A program that runs beside a test, until the end of its scope; by its process id, killed and
// reaped.
class Beside {
 public:
  // Returns when it has printed `ready` on the stream it is heard on, which is stdout and stderr in
  // one.
  Beside(std::vector<std::string> argv, const std::string& ready) {
    int heard[2];
    REQUIRE(::pipe(heard) == 0);
    Command command;
    command.argv = std::move(argv);
    command.environment = {"PATH=/usr/bin:/bin"};
    ChildOptions options;
    options.stdout_fd = options.stderr_fd = heard[1];
    const SpawnResult spawned = spawn_child(command, options);
    ::close(heard[1]);
    REQUIRE(spawned.pid > 0);
    pid_ = spawned.pid;
    heard_ = UniqueFd(heard[0]);
    std::string text;
    char buffer[512];
    while (!contains(text, ready)) {
      const ssize_t got = ::read(heard[0], buffer, sizeof buffer);
      INFO(text);
      REQUIRE(got > 0);
      text.append(buffer, static_cast<std::size_t>(got));
    }
  }
  ~Beside() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  pid_t pid_ = -1;
  UniqueFd heard_;
};

class SshWorld {
 public:
  // sshd_lines: added to the server's configuration.
  explicit SshWorld(const std::string& sshd_lines = "") : port(free_port()) {
    ::mkdir("/run/sshd", 0755);  // where sshd wants it; there already, or not ours to make
    must_run("ssh-keygen -q -t ed25519 -N '' -f " + folder / "host_key");
    must_run("ssh-keygen -q -t ed25519 -N '' -C user@test -f " + folder / "user_key");
    write_file(folder / "authorized_keys", file_content(folder / "user_key.pub"), 0600);
    write_file(folder / "sshd_config",
               sshd_lines + "\nListenAddress 127.0.0.1\nPort " + std::to_string(port) +
                   "\nHostKey " + folder / "host_key" + "\nAuthorizedKeysFile " +
                   folder / "authorized_keys" +
                   "\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nMaxStartups "
                   "100:30:200\nSetEnv XDG_CACHE_HOME=" +
                   folder.folder("cache") + "\n");
    sshd_.emplace(
        std::vector<std::string>{"/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config"},
        "Server listening");
    know_host(file_content(folder / "host_key.pub"));
    configure("");
    write_file(folder.folder("bin") + "/ssh",
               "#!/bin/sh\necho \"$*\" >>" + folder / "ssh_calls" + "\nexec /usr/bin/ssh -F " +
                   folder / "ssh_config" + " \"$@\"\n",
               0755);
  }
  // Lines for `Host *` of the client's configuration, before the usual ones.
  void configure(const std::string& lines) {
    write_file(folder / "ssh_config",
               "Host *\n" + lines + "\n  UserKnownHostsFile " + folder / "known_hosts" +
                   "\n  GlobalKnownHostsFile none\n  GSSAPIAuthentication no\n  IdentityFile " +
                   folder / "user_key" + "\n");
  }
  // public_key: "type base64 comment".
  void know_host(const std::string& public_key, const std::string& marker = "") {
    write_file(folder / "known_hosts",
               marker + "[127.0.0.1]:" + std::to_string(port) + " " + public_key);
  }
  HostTarget target() const { return {"127.0.0.1", user_name(), port, "", false}; }
  SpawnOptions options() const {
    SpawnOptions options = options_for(folder);
    options.environment.set("PATH", folder / "bin" + ":/usr/local/bin:/usr/bin:/bin");
    return options;
  }
  // Did anything but `ssh -G` run?
  bool system_ssh_was_used() const { return contains(file_content(folder / "ssh_calls"), "-T "); }

  TemporaryFolder folder;
  std::uint16_t port;

 private:
  std::optional<Beside> sshd_;
};

}  // namespace hv::launcher::trial
