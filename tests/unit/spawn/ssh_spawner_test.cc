// Agents over ssh to a real sshd: keys known, unknown and changed, logins, and what only the
// system's ssh can do.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/spawner.h"
#include "launcher/spawn/ssh/ssh_session.h"
#include "src/base/log.h"

#include "tests/unit/spawn/ssh_world.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

std::string ssh_hello(const SpawnOptions& options, const HostTarget& host) {
  asio::io_context io;
  const auto spawner = make_spawner(options);
  const auto channel = run(io, spawner->start(host));
  return run(io, read_exactly(*channel, 5));
}

Error failure(const SpawnOptions& options, const HostTarget& host) {
  asio::io_context io;
  const auto spawner = make_spawner(options);
  return start_error(io, *spawner, host);
}

std::string other_key(const SshWorld& world) {
  must_run("ssh-keygen -q -t ed25519 -N '' -f " + world.folder / "other_key");
  return file_content(world.folder / "other_key.pub");
}

}  // namespace

TEST_CASE("libssh starts an agent on a host whose key is known") {
  SshWorld world;
  CHECK(ssh_hello(world.options(), world.target()) == "HELLO");
  CHECK_FALSE(world.system_ssh_was_used());
  CHECK(std::filesystem::exists(world.folder / "cache/hvrun/agent-0.1-test"));
}

TEST_CASE("user, port and key come from the ssh configuration when none is given") {
  SshWorld world;
  world.configure("  Port " + std::to_string(world.port) + "\n  User " + user_name() +
                  "\n  HostName 127.0.0.1");
  CHECK(ssh_hello(world.options(), {"alias", "", 0, "", false}) == "HELLO");
  CHECK_FALSE(world.system_ssh_was_used());
}

TEST_CASE("an unknown host key is refused with its fingerprint") {
  SshWorld world;
  write_file(world.folder / "known_hosts", "");
  const Error error = failure(world.options(), world.target());
  CHECK(error.kind() == ErrorKind::kStart);
  for (const char* part : {"host 127.0.0.1", "not known", "ssh-ed25519 SHA256:"})
    CHECK(contains(error.what(), part));
  CHECK(contains(error.hint(), "--ssh-accept-new"));
  CHECK(contains(error.hint(), "'ssh -p " + std::to_string(world.port) + " 127.0.0.1'"));
  CHECK(file_content(world.folder / "known_hosts").empty());
}

TEST_CASE(
    "--ssh-accept-new takes an unknown key once, for several hosts at once, and keeps the file "
    "whole") {
  SshWorld world;
  write_file(world.folder / "known_hosts", "# the last line has no newline");
  world.configure("  HostName 127.0.0.1");
  SpawnOptions options = world.options();
  options.accept_new_host_keys = true;
  asio::io_context io;
  const auto spawner = make_spawner(options);
  int hellos = 0;
  for (int i = 0; i < 4; ++i) {
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          HostTarget host = world.target();
          const auto channel = co_await spawner->start(host);
          if (co_await read_exactly(*channel, 5) == "HELLO") ++hellos;
        },
        asio::detached);
  }
  io.run();
  CHECK(hellos == 4);
  const std::string known = file_content(world.folder / "known_hosts");
  CHECK(contains(known, "# the last line has no newline\n[127.0.0.1]:" +
                            std::to_string(world.port) + " ssh-ed25519 AAAA"));
  CHECK(known.back() == '\n');
  CHECK(ssh_hello(world.options(), world.target()) == "HELLO");  // known from now on
}

TEST_CASE("a changed host key is refused, with --ssh-accept-new too") {
  SshWorld world;
  world.know_host(other_key(world));
  for (const bool accept : {false, true}) {
    SpawnOptions options = world.options();
    options.accept_new_host_keys = accept;
    const Error error = failure(options, world.target());
    CHECK(contains(error.what(), "THE KEY HAS CHANGED"));
    CHECK(contains(error.what(), "known_hosts line 1"));
    CHECK(contains(error.hint(), "ssh-keygen -R"));
  }
}

TEST_CASE("a host that is known by a key of another type is not mistaken for a changed one") {
  SshWorld world;
  must_run("ssh-keygen -q -t rsa -b 2048 -N '' -f " + world.folder / "rsa_key");
  world.know_host(file_content(world.folder / "host_key.pub"));
  // The server below has both keys; its ed25519 key would be the usual choice.
  SshWorld two("HostKey " + world.folder / "rsa_key");
  two.know_host(file_content(world.folder / "rsa_key.pub"));
  CHECK(ssh_hello(two.options(), two.target()) == "HELLO");
}

TEST_CASE("a revoked host key is refused") {
  SshWorld world;
  const std::string key = file_content(world.folder / "host_key.pub"),
                    name = "[127.0.0.1]:" + std::to_string(world.port) + " ";
  write_file(world.folder / "known_hosts", name + key + "@revoked * " + key);
  CHECK(contains(failure(world.options(), world.target()).what(), "REVOKED"));
}

TEST_CASE("a key that the host does not take: what it takes and what was tried") {
  SshWorld world;
  other_key(world);
  write_file(world.folder / "authorized_keys", file_content(world.folder / "other_key.pub"), 0600);
  const Error error = failure(world.options(), world.target());
  for (const char* part :
       {"log in to host 127.0.0.1", "permission denied", "publickey", "user_key (SHA256:"})
    CHECK(contains(error.what(), part));
  CHECK(contains(error.hint(), "-i"));

  HostTarget host = world.target();
  host.identity_file = world.folder / "other_key";
  CHECK(ssh_hello(world.options(), host) == "HELLO");
}

TEST_CASE("a key file that is named and not there is an error, though another key would do") {
  SshWorld world;
  HostTarget host = world.target();
  host.identity_file = "/no/such/key";
  const Error error = failure(world.options(), host);
  CHECK(contains(error.what(), "/no/such/key: No such file"));
  CHECK_FALSE(error.hint().empty());
}

TEST_CASE("a folder or a device in place of a key file is an error, by --rsh ssh too") {
  SshWorld world;
  HostTarget host = world.target();
  for (const bool by_command : {false, true}) {
    SpawnOptions options = world.options();
    if (by_command) options.remote_shell = "ssh";
    host.identity_file = "/tmp";
    CHECK(contains(failure(options, host).what(), "/tmp: Is a directory"));
    host.identity_file = "/dev/null";
    CHECK(contains(failure(options, host).what(), "/dev/null: Not a regular file"));
  }
}

TEST_CASE("a named file that holds no key is warned of once, one with a key never") {
  static std::vector<std::string> lines;
  lines.clear();
  set_log_sink([](const std::string& line) { lines.push_back(line); });
  SshWorld world;
  other_key(world);
  must_run("ssh-keygen -q -t ed25519 -N secret -f " + world.folder / "locked_key");
  HostTarget host = world.target();
  for (const char* good : {"user_key", "user_key.pub", "locked_key", "other_key"}) {
    host.identity_file = world.folder / good;
    CHECK(ssh_hello(world.options(), host) == "HELLO");
  }
  CHECK(lines.empty());
  host.identity_file = world.folder / "sshd_config";
  for (int i = 0; i < 2; ++i) CHECK(ssh_hello(world.options(), host) == "HELLO");
  set_log_sink(nullptr);
  REQUIRE(lines.size() == 1);
  CHECK(contains(lines[0], "sshd_config is no private key that libssh can read"));
}

TEST_CASE("a key with a passphrase is not asked for, and ssh-add is named") {
  SshWorld world;
  must_run("ssh-keygen -q -p -P '' -N secret -f " + world.folder / "user_key");
  const Error error = failure(world.options(), world.target());
  CHECK(contains(error.what(), "has a passphrase"));
  CHECK(contains(error.hint(), "ssh-add"));
}

TEST_CASE("ssh-agent's keys log in") {
  SshWorld world;
  const std::string socket = world.folder / "agent.socket";
  const Beside agent({"ssh-agent", "-D", "-a", socket}, "SSH_AUTH_SOCK=");
  must_run("SSH_AUTH_SOCK=" + socket + " ssh-add " + world.folder / "user_key");
  std::filesystem::rename(world.folder / "user_key", world.folder / "moved");
  SpawnOptions options = world.options();
  options.environment.set("SSH_AUTH_SOCK", socket);
  CHECK(ssh_hello(options, world.target()) == "HELLO");
  CHECK_FALSE(world.system_ssh_was_used());

  write_file(world.folder / "authorized_keys", other_key(world), 0600);
  CHECK(
      contains(failure(options, world.target()).what(), "agent's ssh-ed25519 user@test (SHA256:"));
}

TEST_CASE("an agent that never answers does not hold up the login") {
  SshWorld world;
  const std::string socket = world.folder / "dead.socket";
  UniqueFd listener;
  REQUIRE(listen_unix(socket, &listener).ok());
  world.configure("  IdentityAgent " + socket);
  std::filesystem::remove(world.folder / "user_key");
  CHECK(contains(failure(world.options(), world.target()).what(), "ssh-agent (does not answer)"));
}

TEST_CASE("a port where nobody listens, and a server that is none") {
  SshWorld world;
  HostTarget host = world.target();
  host.port = free_port();
  const Error refused = failure(world.options(), host);
  CHECK(contains(refused.what(),
                 "connect to host 127.0.0.1: 127.0.0.1:" + std::to_string(host.port)));
  CHECK(contains(refused.what(), "refused"));
  CHECK(contains(refused.hint(), "sshd"));

  UniqueFd silent;
  REQUIRE(listen_tcp(0, &silent, &host.port).ok());
  SpawnOptions options = world.options();
  options.start_timeout = std::chrono::milliseconds(800);
  const Error error = failure(options, host);
  CHECK(error.kind() == ErrorKind::kTimeout);
  CHECK(contains(error.what(), "agree on encryption with host 127.0.0.1"));
}

TEST_CASE("a name that nobody knows is an error, and a dead one delays no other host") {
  SshWorld world;
  HostTarget unknown = world.target();
  unknown.name = "no-such-host.invalid";
  const Error error = failure(world.options(), unknown);
  CHECK(contains(error.what(), "find the address of host no-such-host.invalid"));
  CHECK(contains(error.hint(), "spelling"));
}

TEST_CASE("a jump host is left to the system's ssh") {
  SshWorld world;
  const std::string port = std::to_string(world.port);
  write_file(world.folder / "jump_config", file_content(world.folder / "ssh_config"));
  world.configure("  ProxyCommand /usr/bin/ssh -F " + world.folder / "jump_config" +
                  " -W 127.0.0.1:" + port + " -p " + port + " 127.0.0.1");
  CHECK(ssh_hello(world.options(), world.target()) == "HELLO");
  CHECK(world.system_ssh_was_used());
}

TEST_CASE("a host CA is left to the system's ssh, which checks the certificate") {
  SshWorld ca;
  SshWorld world("HostCertificate " + ca.folder / "certified-cert.pub");
  std::filesystem::copy(world.folder / "host_key.pub", ca.folder / "certified.pub");
  must_run("ssh-keygen -q -s " + ca.folder / "host_key" + " -I test -h -n 127.0.0.1 " +
           ca.folder / "certified.pub");
  // sshd reads the certificate when it starts.
  SshWorld certified("HostCertificate " + ca.folder / "certified-cert.pub\nHostKey " +
                     world.folder / "host_key");
  write_file(certified.folder / "known_hosts",
             "@cert-authority 127.0.0.1,[127.0.0.1]:* " + file_content(ca.folder / "host_key.pub"));
  CHECK(ssh_hello(certified.options(), certified.target()) == "HELLO");
  CHECK(certified.system_ssh_was_used());

  write_file(certified.folder / "known_hosts",
             "@cert-authority 127.0.0.1,[127.0.0.1]:* " + other_key(world));
  const Error error = failure(certified.options(), certified.target());
  CHECK(contains(error.what(), "Host key verification failed"));
  CHECK_FALSE(error.hint().empty());
}

TEST_CASE("HostKeyAlias is honoured, by the system's ssh") {
  SshWorld world;
  write_file(world.folder / "known_hosts",
             "the-cluster " + file_content(world.folder / "host_key.pub"));
  world.configure("  HostKeyAlias the-cluster");
  CHECK(ssh_hello(world.options(), world.target()) == "HELLO");
  CHECK(world.system_ssh_was_used());
}

TEST_CASE("a key that has changed is forgotten by the name that known_hosts has for it") {
  SshWorld world;
  const std::string key = other_key(world), port = std::to_string(world.port);
  world.know_host(key);
  CHECK(contains(failure(world.options(), world.target()).hint(),
                 "ssh-keygen -R '[127.0.0.1]:" + port + "' -f "));
  CHECK_FALSE(world.system_ssh_was_used());

  world.configure("  IdentitiesOnly yes");
  CHECK(contains(failure(world.options(), world.target()).hint(),
                 "ssh-keygen -R '[127.0.0.1]:" + port + "'"));
  CHECK(world.system_ssh_was_used());

  write_file(world.folder / "known_hosts", "the-cluster " + key);
  world.configure("  HostKeyAlias the-cluster");
  CHECK(contains(failure(world.options(), world.target()).hint(), "ssh-keygen -R the-cluster"));
}

TEST_CASE("a key that cannot be read is an error with its host and what to try") {
  asio::io_context io;
  int both[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
  const UniqueFd theirs(both[1]);
  SshConfig config;
  config.host_name = "b";
  config.user = "ada";
  const auto session = std::make_shared<SshSession>(io.get_executor(), UniqueFd(both[0]), config,
                                                    std::vector<std::string>{});
  try {
    (void)host_key_of(*session, "b");
    FAIL("it has been read");
  } catch (const Error& error) {
    CHECK(contains(error.what(), "read the key of host b: "));
    CHECK(contains(error.hint(), "ssh -v b"));
  }
}

TEST_CASE("a configuration that ssh refuses is shown in its words") {
  SshWorld world;
  world.configure("  NoSuchOption yes");
  const Error error = failure(world.options(), world.target());
  CHECK(contains(error.what(), "read the ssh configuration for host 127.0.0.1"));
  CHECK(contains(lower(error.what()), "nosuchoption"));
}
