// What the tests of spawners share: temporary folders, a stand-in agent, and running coroutines to
// their end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/spawn/agent_program.h"
#include "launcher/spawn/spawner.h"
#include "tests/unit/temporary_folder.h"

namespace hv::launcher::trial {

namespace asio = boost::asio;

inline void write_file(const std::string& path, const std::string& content, mode_t mode = 0644) {
  std::ofstream(path, std::ios::binary) << content;
  ::chmod(path.c_str(), mode);
}

using tests::file_content;
using tests::TemporaryFolder;

// Says HELLO, then gives back what it is sent; says on stderr that it has ended.
inline const char* kStandIn =
    "#!/bin/sh\ncase \"$1\" in --version) echo 'hvrun-agent 0 test'; exit 0;; esac\n"
    "[ -n \"$STAND_IN_DIES\" ] && { echo 'the stand-in has died' >&2; exit 9; }\n"
    "printf HELLO; cat; echo 'the stand-in has ended' >&2\n";

// Runs a coroutine to its end and hands over its result or exception.
template <typename Result>
Result run(asio::io_context& io, asio::awaitable<Result> work) {
  std::optional<Result> result;
  std::exception_ptr failure;
  bool done = false;
  asio::co_spawn(io, std::move(work), [&](std::exception_ptr error, Result value) {
    failure = error;
    if (!error) result.emplace(std::move(value));
    done = true;
  });
  io.restart();
  while (!done && io.run_one() > 0) {
  }
  if (failure) std::rethrow_exception(failure);
  REQUIRE(done);
  return std::move(*result);
}

inline asio::awaitable<std::string> read_exactly(AgentChannel& channel, std::size_t size) {
  std::string all, buffer(64 << 10, '\0');
  while (all.size() < size) {
    const std::size_t got = co_await channel.read_some(asio::buffer(buffer));
    if (got == 0) break;
    all.append(buffer, 0, got);
  }
  co_return all;
}

inline asio::awaitable<bool> write_all(AgentChannel& channel, std::string bytes) {
  co_return co_await channel.write(asio::buffer(bytes));
}

// The Error that starting gives; fails the test when it succeeds.
inline Error start_error(asio::io_context& io, Spawner& spawner, const HostTarget& host) {
  try {
    (void)run(io, spawner.start(host));
  } catch (const Error& error) {
    return error;
  }
  FAIL("starting on " << host.name << " succeeded");
  return Error(ErrorKind::kStart, "");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool is_installed(const std::string& program) {
  return ::access(("/bin/" + program).c_str(), X_OK) == 0 ||
         ::access(("/usr/bin/" + program).c_str(), X_OK) == 0;
}

// An rsh that knows one host: this machine, with another login shell, HOME and environment.
// prologue: shell code, run before the login shell (sets the environment, prints noise).
class FakeRsh {
 public:
  FakeRsh(const TemporaryFolder& folder, const std::string& login_shell,
          const std::string& prologue, const std::string& name = "rsh")
      : file_(folder / name) {
    write_file(file_, "#!/bin/sh\nshift\n" + prologue + "\nexec " + login_shell + " -c \"$1\"\n",
               0755);
  }
  const std::string& command() const { return file_; }

 private:
  std::string file_;
};

// A kubectl that knows one pod: this machine. prologue: shell code before the command. Gives its
// path.
inline std::string fake_kubectl(const TemporaryFolder& folder, const std::string& prologue) {
  const std::string file = folder / "kubectl";
  write_file(file,
             "#!/bin/sh\nprintf '%s|' \"$@\" >" + folder / "kubectl-words" +
                 "\nwhile [ \"$1\" != -- ]; do shift; done; shift\n" + prologue + "\nexec \"$@\"\n",
             0755);
  return file;
}

inline SpawnOptions options_for(const TemporaryFolder& folder, const std::string& rsh = "") {
  const std::string agent = folder / "agent-to-copy";
  if (!std::filesystem::exists(agent)) write_file(agent, kStandIn, 0755);
  SpawnOptions options;
  options.environment.set("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin");
  options.agent_program = agent;
  options.build_id = "0.1-test";
  options.start_timeout = std::chrono::seconds(20);
  options.remote_shell = rsh;
  return options;
}

}  // namespace hv::launcher::trial
