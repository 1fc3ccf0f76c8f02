// What every spawner promises, asked of each: local, a command, kubectl, libssh, the system's ssh.
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <thread>

#include "launcher/spawn/spawner.h"
#include "tests/unit/spawn/ssh_world.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

// One way to reach this machine.
struct Way {
  std::string name;
  SpawnOptions options;
  HostTarget host;
};

// world must outlive them.
std::vector<Way> all_ways(SshWorld& world, SshWorld& routed) {
  routed.configure("  HostKeyAlias routed");
  write_file(routed.folder / "known_hosts",
             "routed " + file_content(routed.folder / "host_key.pub"));
  const FakeRsh rsh(world.folder, "sh", "export XDG_CACHE_HOME=" + world.folder.folder("cache"));
  SpawnOptions by_command = world.options();
  by_command.remote_shell = rsh.command();
  SpawnOptions by_kubectl = world.options();
  by_kubectl.reach.kubectl.program =
      fake_kubectl(world.folder, "export XDG_CACHE_HOME=" + world.folder.folder("pod"));
  return {{"local", world.options(), {"localhost", "", 0, "", true}},
          {"command", by_command, {"b", "", 0, "", false}},
          {"kubectl", by_kubectl, {"b", "", 0, "", false}},
          {"libssh", world.options(), world.target()},
          {"system ssh", routed.options(), routed.target()}};
}

void for_all_ways(const std::string& agent, const std::function<void(const Way&)>& check) {
  SshWorld world, routed;
  for (Way& way : all_ways(world, routed)) {
    CAPTURE(way.name);
    write_file(way.options.agent_program, agent, 0755);
    check(way);
  }
  CHECK_FALSE(world.system_ssh_was_used());
  CHECK(routed.system_ssh_was_used());
}

// An agent by script: what it does after --version has been answered.
std::string agent_that(const std::string& does) {
  return "#!/bin/sh\n[ \"$1\" = --version ] && { echo hvrun-agent 0 test; exit 0; }\n" + does +
         "\n";
}

}  // namespace

TEST_CASE(
    "every spawner's stream begins with the agent's first byte and carries all bytes both ways at "
    "once") {
  for_all_ways(agent_that("printf HELLO; exec cat"), [](const Way& way) {
    asio::io_context io;
    const auto spawner = make_spawner(way.options);
    const auto channel = run(io, spawner->start(way.host));
    CHECK(run(io, read_exactly(*channel, 5)) == "HELLO");
    std::string sent(6 << 20, '\0');
    for (std::size_t i = 0; i < sent.size(); ++i)
      sent[i] = static_cast<char>(i * 2654435761u >> 13);
    bool written = false;
    asio::co_spawn(io, write_all(*channel, sent),
                   [&](std::exception_ptr, bool all) { written = all; });
    const std::string echoed = run(io, read_exactly(*channel, sent.size()));
    CHECK(written);
    CHECK((echoed == sent));
  });
}

TEST_CASE("every spawner's agent sees the end of its stream when the channel is closed") {
  for_all_ways(
      agent_that("printf '%s\\n' $$; cat >/dev/null; echo ended >\"$(dirname \"$0\")/ended\""),
      [](const Way& way) {
        asio::io_context io;
        const auto spawner = make_spawner(way.options);
        auto channel = run(io, spawner->start(way.host));
        std::string buffer(100, '\0');
        REQUIRE(run(io, channel->read_some(asio::buffer(buffer))) > 1);
        const std::string process = "/proc/" + std::to_string(std::stoi(buffer));
        REQUIRE(std::filesystem::exists(process));
        channel->close();
        CHECK(run(io, channel->read_some(asio::buffer(buffer))) == 0);
        CHECK_FALSE(run(io, write_all(*channel, "x")));
        const TimePoint deadline = now() + std::chrono::seconds(10);
        const auto is_gone = [&process] {
          return !contains(file_content(process + "/stat"), ") ") ||
                 contains(file_content(process + "/stat"), ") Z ");
        };
        while (!is_gone() && now() < deadline) std::this_thread::yield();
        CHECK(is_gone());
      });
}

TEST_CASE("every spawner tells how an agent ended and what it said on stderr") {
  for_all_ways(agent_that("printf HELLO; echo 'something broke' >&2; exit 9"), [](const Way& way) {
    asio::io_context io;
    const auto spawner = make_spawner(way.options);
    const auto channel = run(io, spawner->start(way.host));
    CHECK(run(io, read_exactly(*channel, 100)) == "HELLO");
    CHECK(contains(channel->last_words(), "something broke"));
    CHECK(contains(channel->last_words(), "code 9"));
  });
}

TEST_CASE("every spawner's stream survives a flood that is read slowly, with stderr beside it") {
  for_all_ways(
      agent_that(
          "head -c 30000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero >&2; printf END"),
      [](const Way& way) {
        asio::io_context io;
        const auto spawner = make_spawner(way.options);
        const auto channel = run(io, spawner->start(way.host));
        const std::string all = run(io, read_exactly(*channel, 40000000));
        CHECK(all.size() == 30000003);
        CHECK(all.substr(all.size() - 4) == "xEND");
        CHECK(channel->last_words().size() < 20000);
      });
}

TEST_CASE("an agent sees descriptors 0, 1 and 2 and no other, whatever the spawner") {
  // 3 is the folder that ls itself has opened.
  for_all_ways(agent_that("exec ls /proc/self/fd"), [](const Way& way) {
    asio::io_context io;
    const auto spawner = make_spawner(way.options);
    const auto channel = run(io, spawner->start(way.host));
    CHECK(run(io, read_exactly(*channel, 1000)) == "0\n1\n2\n3\n");
  });
}

TEST_CASE("a local agent that is missing is an error that names it") {
  const TemporaryFolder folder;
  SpawnOptions options = options_for(folder);
  options.agent_program = folder / "nowhere";
  asio::io_context io;
  const Error error = start_error(io, *make_spawner(options), {"localhost", "", 0, "", true});
  CHECK(contains(error.what(), "nowhere"));
  CHECK_FALSE(error.hint().empty());
}

TEST_CASE("--rsh gets the words of a shell") {
  const TemporaryFolder folder;
  const std::string rsh = folder / "my rsh";
  write_file(rsh, "#!/bin/sh\nprintf '%s|' \"$@\" >" + folder / "words" + "\n", 0755);
  asio::io_context io;
  SpawnOptions options = options_for(folder, "'" + rsh + "' -o \"a b\"");
  (void)start_error(io, *make_spawner(options), {"b", "", 0, "", false});
  CHECK(file_content(folder / "words").find("-o|a b|b|exec /bin/sh -c ") == 0);
  options.accept_new_host_keys = true;
  const Error refused = start_error(io, *make_spawner(options), {"b", "", 0, "", false});
  CHECK(refused.kind() == ErrorKind::kUsage);
  CHECK(contains(refused.what(), "--ssh-accept-new"));
  CHECK(contains(refused.what(), rsh));
  for (const std::string broken : {"'ssh", "  "}) {
    options.remote_shell = broken;
    CHECK(start_error(io, *make_spawner(options), {"b", "", 0, "", false}).kind() ==
          ErrorKind::kUsage);
  }
  options.accept_new_host_keys = false;
  options.remote_shell = "ssh";
  CHECK(start_error(io, *make_spawner(options), {"-oProxyCommand=evil", "", 0, "", false}).kind() ==
        ErrorKind::kUsage);
}

TEST_CASE(
    "--rsh with ssh gets user, port and key, with rsh the user, another program none of them") {
  const TemporaryFolder folder;
  for (const std::string name : {"ssh", "rsh", "enter"})
    write_file(folder / name, "#!/bin/sh\nprintf '%s|' \"$@\" >" + folder / "words" + "\n", 0755);
  write_file(folder / "key", "");
  asio::io_context io;
  const auto error_of = [&](const std::string& program, const HostTarget& host) {
    const auto spawner = make_spawner(options_for(folder, folder / program));
    return start_error(io, *spawner, host);
  };
  const std::string key = folder / "key";
  (void)error_of("ssh", {"b", "me", 2222, key, false});
  CHECK(file_content(folder / "words").find("-l|me|-p|2222|-i|" + key + "|b|exec ") == 0);
  (void)error_of("rsh", {"b", "me", 0, "", false});
  CHECK(file_content(folder / "words").find("-l|me|b|exec ") == 0);
  const auto refused = [&](const std::string& program, const HostTarget& host) {
    const Error error = error_of(program, host);
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK(contains(error.hint(), "into the command itself"));
    return std::string(error.what());
  };
  CHECK(contains(refused("enter", {"b", "me", 0, "", false}),
                 "reach host b: user 'me' (-l, user@host, user=) cannot be passed on to "));
  CHECK(contains(refused("enter", {"b", "", 22, "", false}), "port 22 (-p, port=)"));
  CHECK(contains(refused("enter", {"b", "", 0, key, false}), "key " + key + " (-i, identity=)"));
  CHECK(contains(refused("rsh", {"b", "me", 22, "", false}), "port 22"));
}

TEST_CASE("--rsh with a program that runs nothing there is told with how to try it") {
  const TemporaryFolder folder;
  asio::io_context io;
  const auto spawner = make_spawner(options_for(folder, "true"));
  const Error error = start_error(io, *spawner, {"b", "", 0, "", false});
  CHECK(contains(error.what(), "true ended with exit code 0"));
  CHECK(contains(error.hint(), "echo there | true b cat"));
}

TEST_CASE("--rsh with a program named ssh is told to accept new keys, before its own options") {
  const TemporaryFolder folder;
  const std::string ssh = folder / "ssh";
  write_file(ssh, "#!/bin/sh\nprintf '%s|' \"$@\" >" + folder / "words" + "\n", 0755);
  asio::io_context io;
  SpawnOptions options = options_for(folder, ssh + " -J gate");
  options.accept_new_host_keys = true;
  (void)start_error(io, *make_spawner(options), {"b", "", 0, "", false});
  CHECK(file_content(folder / "words")
            .find("-o|StrictHostKeyChecking=accept-new|-J|gate|b|exec /bin/sh -c ") == 0);
}
