// How the real agent starts ranks: environment, arguments, descriptors, and what a host lacks.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "hvrun_version.h"
#include "launcher/agent/ranks/rank_command.h"
#include "src/base/text.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;

namespace {

std::vector<std::string> zero_separated(const std::string& text) {
  std::vector<std::string> words = split(text, '\0');
  words.pop_back();
  return words;
}

bool holds(const std::vector<std::string>& entries, const std::string& entry) {
  return std::find(entries.begin(), entries.end(), entry) != entries.end();
}

wire::Problem launch_problem(const wire::Launch& launch) {
  AgentClient client;
  client.set_up();
  client.send(launch);
  return client.expect<wire::Problem>();
}

}  // namespace

TEST_CASE("the agent sends Hello with its build and facts") {
  AgentClient client;
  CHECK(client.hello.protocol == wire::kAgentProtocol);
  CHECK(client.hello.build == HVRUN_BUILD_ID);
  CHECK(client.hello.facts.usable_cores >= 1);
  CHECK(client.hello.facts.memory_bytes > 1u << 20);
  CHECK(!client.hello.facts.hostname.empty());
  CHECK(client.finish() == 0);
}

TEST_CASE("the whole life of a job works over pipes as over a socket") {
  for (const Streams streams : {Streams::kSocket, Streams::kPipes}) {
    AgentClient client(streams);
    client.set_up();
    const wire::Started started = client.start(launch_shell("echo out $RANK; echo err >&2", 2));
    CHECK(started.pids.size() == 2);
    for (int i = 0; i < 2; ++i) {
      const auto exited = client.expect<wire::Exited>();
      CHECK(exited.code == 0);
      CHECK(!exited.by_signal);
    }
    CHECK(client.output_of(1) == "out 1\n");
    CHECK(client.output_of(0) == "out 0\n");
    CHECK(client.output_of(0, 2) == "err\n");
    CHECK(client.finish() == 0);
  }
}

TEST_CASE("a rank's environment consists of the common one, the host's values and its contract") {
  AgentClient client(Streams::kSocket, {"XDG_TEST_OF_HOST=host", "LOGIN_ONLY=x", "BOTH=host"});
  client.set_up();
  wire::Launch launch = launch_of({"env", "-0"});
  launch.environment.insert(launch.environment.end(), {"COMMON=1", "BOTH=common", "RANK=common"});
  launch.host_variables = {"XDG_*", "BOTH"};
  client.start(launch);
  const auto entries = zero_separated(client.output_of(0));
  CHECK(holds(entries, "COMMON=1"));
  CHECK(holds(entries, "XDG_TEST_OF_HOST=host"));
  CHECK(holds(entries, "BOTH=common"));
  CHECK(holds(entries, "RANK=0"));
  CHECK(holds(entries, "PWD=/tmp"));
  CHECK(holds(entries, "PYTHONUNBUFFERED=1"));
  CHECK(holds(entries, "HVRUN_JOB_ID=" + client.job_id()));
  CHECK(!holds(entries, "LOGIN_ONLY=x"));
  CHECK(client.finish() == 0);
}

TEST_CASE("arguments and values arrive byte for byte") {
  AgentClient client;
  client.set_up();
  const std::string strange = "a b\n\t'\"\\$(x)`;*?\x01\xff\xfe" + std::string(100000, 'z');
  wire::Launch launch = launch_of({"/usr/bin/printf", "%s|", strange, "", "-x"});
  launch.environment.push_back("STRANGE=" + strange.substr(0, 30));
  client.start(launch);
  CHECK(client.output_of(0) == strange + "||-x|");
  CHECK(client.finish() == 0);
}

TEST_CASE("a rank sees exactly descriptors 0, 1 and 2") {
  AgentClient client;
  client.set_up();
  client.start(launch_shell("exec ls /proc/self/fd", 2));
  // ls itself opens the directory: that is 3.
  CHECK(client.output_of(0) == "0\n1\n2\n3\n");
  CHECK(client.output_of(1) == "0\n1\n2\n3\n");
  CHECK(client.finish() == 0);
}

TEST_CASE("a rank starts with clean signals, in its own session, without O_NONBLOCK") {
  AgentClient client;
  client.set_up();
  client.start(
      launch_shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; cut -d' ' -f5,6 /proc/$$/stat; echo "
                   "$$; grep flags /proc/$$/fdinfo/1"));
  const auto lines = split(client.output_of(0), '\n');
  CHECK(lines[0] == "SigBlk:\t0000000000000000");
  CHECK(lines[1] == "SigIgn:\t0000000000000000");
  CHECK(lines[2] == lines[3] + " " + lines[3]);
  CHECK(lines[4].find("4000") == std::string::npos);  // O_NONBLOCK in octal
  CHECK(client.finish() == 0);
}

TEST_CASE("a host's missing program is reported before the start, with path, reason and hint") {
  wire::Launch launch = launch_shell("true");
  launch.programs[0].directory = "/no/such/place";
  wire::Problem problem = launch_problem(launch);
  CHECK(problem.what ==
        "change to the working directory /no/such/place: No such file or directory");
  CHECK(problem.hint.find("--wdir") != std::string::npos);

  problem = launch_problem(launch_of({"/no/such/program"}));
  CHECK(problem.what == "find the program /no/such/program: No such file or directory");
  problem = launch_problem(launch_of({"no-such-program"}));
  CHECK(problem.what.find("not found in PATH (/usr/local/bin:/usr/bin:/bin)") != std::string::npos);
  problem = launch_problem(launch_of({"/etc/passwd"}));
  CHECK(problem.what == "find the program /etc/passwd: Permission denied");
}

TEST_CASE("a program that is not found is reported with what may have been meant") {
  TemporaryFolder folder;
  std::filesystem::copy("/usr/bin/env", folder / "hello");
  for (const char* file : {"hello.c", "train.py", "ready.py", "data", "with blank"})
    std::ofstream(folder / file) << "x\n";
  std::filesystem::permissions(folder / "ready.py", std::filesystem::perms::all);
  const std::vector<std::pair<std::string, std::string>> cases{
      {"hello", "./hello, for hello lies in the ranks' directory, which is not searched"},
      {"hello.c", "the program that is compiled from ./hello.c, for"},
      {"train.py", "name python3 before it: hvrun ... python3 train.py"},
      {"./train.py", "name python3 before it: hvrun ... python3 ./train.py"},
      {"ready.py", "name python3 before it: hvrun ... python3 ready.py"},
      {"./ready.py", "name python3 before it: hvrun ... python3 ./ready.py"},
      {"data", "chmod +x ./data, for"},
      {"./hello arg", "leave out the quotes"},
      {"cd /tmp && ls", "hvrun starts programs, and no lines of a shell: sh -c 'cd /tmp && ls'"},
      {"scirpt", "'hvrun script' writes a job script; or "},
      {"./", "name a program in that directory"},
      {"./nothing", "check that it lies at that path on every host"},
      {"help", "'hvrun --help' tells of hvrun itself; or install it there"},
      {"version", "'hvrun --version'"},
      {"envv", "'hvrun env'"},
      {"evn", "'hvrun env' lists what sets something; or install it there"},
      {"chekc", "'hvrun --check-build' says what is there; or install it there"},
      {"check-biuld", "'hvrun --check-build'"},
      {"sh -c true", "leave out the quotes"},
      {"no such program", "install it there, name it by its path"},
      {"with blank", "chmod +x ./with blank, for"},
      {"heap", "install it there, name it by its path"},
      {"chuck", "install it there, name it by its path"},
      {"shell", "install it there, name it by its path"},
      {"end", "install it there, name it by its path"},
      {"nothing-like-it", "install it there, name it by its path"}};
  for (const auto& [name, advice] : cases) {
    wire::Launch launch = launch_of({name});
    launch.programs[0].directory = folder.path();
    CAPTURE(name);
    CHECK(launch_problem(launch).hint.rfind(advice, advice == "leave out the quotes" ? 80 : 0) !=
          std::string::npos);
  }
}

TEST_CASE("a missing interpreter is named before anything starts") {
  TemporaryFolder folder;
  const std::string script = folder / "script";
  std::ofstream(script) << "#!/no/such/interpreter -x\n";
  std::filesystem::permissions(script, std::filesystem::perms::all);
  const auto problem = launch_problem(launch_of({script}));
  CHECK(problem.what.find("/no/such/interpreter: No such file or directory") != std::string::npos);
  CHECK(!problem.hint.empty());
}

TEST_CASE("a Python script whose first line names no interpreter is not given to the shell") {
  TemporaryFolder folder;
  const std::string script = folder / "ready.py";
  std::ofstream(script) << "import os\n";
  std::filesystem::permissions(script, std::filesystem::perms::all);
  CHECK(launch_problem(launch_of({script})).what ==
        "execute " + script + ": its first line names no interpreter");
  std::ofstream(script) << "#!/usr/bin/env true\n";
  AgentClient client;
  client.set_up();
  client.start(launch_of({script}));
  CHECK(client.expect<wire::Exited>().code == 0);
  CHECK(client.finish() == 0);
}

TEST_CASE("a program that disappears before Go is a problem, and no rank is left running") {
  TemporaryFolder folder;
  std::filesystem::copy("/usr/bin/env", folder / "mine");
  AgentClient client;
  client.set_up();
  client.send(launch_of({folder / "mine"}, 3));
  (void)client.expect<wire::Ready>();
  std::filesystem::remove(folder / "mine");
  client.send(wire::Go{});
  const auto problem = client.expect<wire::Problem>();
  CHECK(problem.what ==
        "start the ranks: execute " + (folder / "mine") + ": No such file or directory");
  CHECK(client.finish() == 0);
}

TEST_CASE("a program is searched relative to the working directory") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::create_symlink("/usr/bin/env", folder / "bin/mine");
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_of({"bin/mine"});
  launch.programs[0].directory = folder.path();
  client.start(launch);
  CHECK(client.output_of(0).find("PWD=" + folder.path()) != std::string::npos);
  CHECK(client.finish() == 0);
}

TEST_CASE("fifty ranks start, print and end") {
  AgentClient client;
  client.set_up();
  CHECK(client.start(launch_shell("echo $RANK; exit $((RANK % 3))", 50)).pids.size() == 50);
  for (int i = 0; i < 50; ++i) {
    const auto exited = client.expect<wire::Exited>();
    CHECK(exited.code == exited.rank % 3);
  }
  for (std::uint32_t rank = 0; rank < 50; ++rank)
    CHECK(client.output_of(rank) == std::to_string(rank) + "\n");
  CHECK(client.finish() == 0);
}

TEST_CASE("messages out of turn and garbage end the agent, not the machine") {
  for (const std::string& bytes : {encode_frame_of(wire::Go{}), encode_frame_of(wire::Launch{}),
                                   std::string("\xff\xff\xff\xff garbage"), encode_frame(200, "x"),
                                   encode_frame(2, "short")}) {
    AgentClient client;
    client.send_bytes(bytes);
    CHECK(client.wait_for_exit() == 1);
  }
}

TEST_CASE("the master port is held and can still be bound by a rank") {
  AgentClient client;
  wire::SetupRequest setup;
  setup.hold_port = true;
  const wire::SetupReply reply = client.set_up(setup);
  REQUIRE(reply.master_port > 0);
  const std::string port = std::to_string(reply.master_port);
  client.start(launch_of(
      {"/usr/bin/python3", "-c",
       "import "
       "socket,sys\ns=socket.socket();s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)\n"
       "s.bind(('0.0.0.0',int(sys.argv[1])));s.listen();print('bound')",
       port}));
  CHECK(client.output_of(0) == "bound\n");
  CHECK(client.finish() == 0);

  AgentClient second;
  setup.master_port = 70000;
  setup.job_id = second.job_id();
  second.send(setup);
  CHECK(second.expect<wire::Problem>().what.find("70000") != std::string::npos);
}

TEST_CASE("the agent refuses a malformed range of ports") {
  AgentClient client;
  wire::SetupRequest setup;
  setup.hold_port = true;
  setup.port_range = "9-8";
  setup.job_id = client.job_id();
  client.send(setup);
  CHECK(client.expect<wire::Problem>().what.find("'9-8' is no range of ports") !=
        std::string::npos);
}

TEST_CASE("each rank runs its own program, and a host searches only the programs of its ranks") {
  AgentClient client;
  client.set_up();
  wire::Launch launch = launch_of({"/no/such/program"}, 2);
  launch.programs[0].directory = "/no/such/folder";
  launch.programs.push_back({{"sh", "-c", "echo $A $PWD"}, "/", {"A=one"}});
  launch.programs.push_back({{"echo", "two"}, "/tmp", {}});
  launch.ranks[0].program = 1;
  launch.ranks[1].program = 2;
  client.start(launch);
  CHECK(client.output_of(0) == "one /\n");
  CHECK(client.output_of(1) == "two\n");
  CHECK(client.finish() == 0);
}

TEST_CASE("a Launch is malformed without a rank's program, with impossible cores or a rank twice") {
  wire::Launch launch = launch_of({"true"});
  CHECK(launcher::is_well_formed(launch));
  launch.ranks[0].cores = {65535};
  CHECK(launcher::is_well_formed(launch));
  launch.ranks[0].cores = {65536};
  CHECK_FALSE(launcher::is_well_formed(launch));
  launch.ranks[0].cores.clear();
  launch.ranks[0].program = 1;
  CHECK_FALSE(launcher::is_well_formed(launch));
  launch = launch_of({"true"}, 2);
  CHECK(launcher::is_well_formed(launch));
  launch.ranks[1].rank = launch.ranks[0].rank;
  CHECK_FALSE(launcher::is_well_formed(launch));
}
