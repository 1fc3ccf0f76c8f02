// Tests of launcher/agent/ranks/python_start: PYTHONPATH, and the directory's life.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/python_start.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "launcher/agent/ending/sweeper.h"
#include "src/base/text.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::tests;

namespace {

bool exists(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

wire::SetupRequest setup_of(const std::string& job_id) {
  wire::SetupRequest setup;
  setup.job_id = job_id;
  setup.host_id = 7;
  return setup;
}

// A rank that prints its PYTHONPATH and waits.
std::string path_of_rank(AgentClient& client) {
  client.start(launch_shell("echo \"$PYTHONPATH\"; exec tail -f /dev/null"));
  client.until([&] { return client.output_so_far(0).ends_with('\n'); }, "its PYTHONPATH");
  return std::string(trim(client.output_so_far(0)));
}

}  // namespace

TEST_CASE("the directory comes first, an outer job's is left out, and no empty entry comes about") {
  CHECK(python_path("/d", "") == "/d");
  CHECK(python_path("/d", "/a:/b") == "/d:/a:/b");
  CHECK(python_path("/d", "/a::/b") == "/d:/a::/b");  // the user's own empty entry
  CHECK(python_path("/d", "/dev/shm/hvrun-python-ab-0:/a") == "/d:/a");
  CHECK(python_path("/d", "/tmp/hvrun-python-ab-0") == "/d");
  CHECK(python_path("/d", "/a/hvrun-python-src/lib") == "/d:/a/hvrun-python-src/lib");
}

TEST_CASE("only the user may enter the directory, and a directory that is there is not used") {
  const std::string job_id = random_hex(12);
  PythonStart start, second;
  start.create(setup_of(job_id));
  struct stat found {};
  REQUIRE(::stat(start.directory().c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0700);
  for (const char* name : {"sitecustomize.py", "_hvrun_stacks.py", "_hvrun_limits.py"})
    CHECK(exists(start.directory() + "/" + name));
  second.create(setup_of(job_id));
  CHECK(second.directory() != start.directory());
  const std::string path = start.directory();
  start.remove();
  CHECK_FALSE(exists(path));
}

TEST_CASE("HVRUN_PYTHON_START=0 leaves PYTHONPATH as it is") {
  PythonStart start;
  start.create(setup_of(random_hex(12)));
  for (const char* value : {"0", "1"}) {
    RankEnvironment environment;
    environment.set("PYTHONPATH", "/a");
    environment.set("HVRUN_PYTHON_START", value);
    start.add_to(&environment);
    const bool has_directory = environment.as_environment().get_or("PYTHONPATH", "") != "/a";
    CHECK(has_directory == (std::string(value) == "1"));
  }
}

TEST_CASE("a sweep removes the directory of an agent that was killed together with its guard") {
  AgentClient client;
  client.set_up();
  const std::string path = path_of_rank(client);
  REQUIRE(exists(path + "/sitecustomize.py"));
  wire::SetupRequest setup;
  setup.job_id = client.job_id();
  setup.sweep = wire::LostAgent{process_id(client.agent()), process_id(client.guard()),
                                cgroup_of(client.agent()), false};
  for (const pid_t pid : {client.guard(), client.agent()}) {
    ::kill(pid, SIGSTOP);
    wait_until([pid] { return state_of(pid) == 'T'; }, "a stop");
  }
  for (const pid_t pid : {client.guard(), client.agent()}) ::kill(pid, SIGKILL);
  AgentClient fresh;
  fresh.send(setup);
  fresh.expect<wire::Empty>();
  CHECK_FALSE(exists(path));
}

TEST_CASE("the directory goes with the agent, also with one that is killed") {
  for (const bool is_killed : {false, true}) {
    AgentClient client;
    client.set_up();
    const std::string path = path_of_rank(client);
    REQUIRE(exists(path));
    if (is_killed) {
      ::kill(client.agent(), SIGKILL);
      wait_until([&path] { return !exists(path); }, "its guard's work");
    } else {
      client.send(wire::End{0});
      client.expect<wire::Empty>();
      CHECK_FALSE(exists(path));
    }
  }
}
