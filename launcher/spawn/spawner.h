// Spawner: how an agent starts on a host. One interface; local, ssh (libssh), exec (any rsh-like
// command), kubectl (a pod) and srun (a Slurm step).
// SPDX-License-Identifier: Apache-2.0
//
// The supervisor starts all hosts at once and sees only AgentChannels: a byte stream to an agent
// that runs. Everything happens on one io_context thread, in coroutines; nothing here blocks it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "src/base/clock.h"
#include "src/base/environment.h"
#include "src/base/error.h"
#include "src/net/port_range.h"

namespace hv::launcher {

// Where an agent shall start.
struct HostTarget {
  std::string name;           // as the user wrote it, without user and port
  std::string user;           // empty: what ssh would take
  std::uint16_t port = 0;     // 0: what ssh would take
  std::string identity_file;  // empty: what ssh would take
  bool is_local = false;      // this machine, named by nobody, by "localhost" or its hostname
  std::string address{};      // empty: what ssh would take for the name
};

// For ssh's -o: connects there and goes by that address in known_hosts, as HostName in a
// configuration does.
std::string host_name_option(const std::string& address);

// The connected stream to one agent. Closing it (or destroying the object) makes the agent end
// everything.
class AgentChannel {
 public:
  virtual ~AgentChannel() = default;
  // At least one byte; 0 when the stream has ended. Throws nothing: a broken stream has ended.
  virtual boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) = 0;
  // All of it; false when the stream is broken. One caller at a time.
  virtual boost::asio::awaitable<bool> write(boost::asio::const_buffer buffer) = 0;
  virtual void close() = 0;
  // After the stream has ended: why, as far as known ("ssh: connection reset by peer"), and what
  // the host printed on stderr; for messages. May be empty.
  virtual std::string last_words() const = 0;
};

struct SpawnOptions {
  Environment environment;  // hvrun's own
  std::string
      agent_program;     // the agent's file on this machine, for the local host and for copying
  std::string build_id;  // names the copy on a host
  Duration lost_after = std::chrono::seconds(15);  // told to the agent (agent_words)
  Duration start_timeout = std::chrono::seconds(30);
  bool accept_new_host_keys = false;
  std::string remote_shell;  // --rsh; empty: libssh
  HostReach reach{};         // what whoever named the hosts says of that
  bool by_srun = false;      // every host is a node of this Slurm job
  PortRange port_range{};    // where hvrun listens for agents that srun starts
};

// The agent's arguments: "--lost-after 15", so that it knows before SetupRequest how long a silent
// hvrun is waited for. Words of letters, digits, '-' and '.'.
std::vector<std::string> agent_words(const SpawnOptions& options);

class Spawner {
 public:
  virtual ~Spawner() = default;
  // Starts the agent (copying it there first if that host lacks this build) and hands over its
  // stream, whose first byte is the first byte of the agent's Hello frame. Throws Error(kStart or
  // kTimeout) that names host, reason and fix; kTimeout once start_timeout has passed.
  virtual boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) = 0;
  // How start() reached this host: "SSH", "srun", "this machine".
  virtual std::string route(const HostTarget& host) = 0;
  // What to try where the agent that it had started was lost.
  virtual std::string advice_if_lost(const HostTarget& host) = 0;
  // Removes what starts that did not come to their end may have left on hosts, within seconds: once
  // no more is to be started, and the user has been told why. Most leave nothing.
  virtual boost::asio::awaitable<void> tidy_up() { co_return; }
};

// by_srun: one for all. Else picks per host: local hosts get the local spawner, others ssh, or exec
// where --rsh is given or where the user's ssh configuration needs what libssh lacks; pods get
// kubectl. A host that turns out to be this machine once its name is resolved gets the local one,
// too. The reference must outlive every channel.
std::unique_ptr<Spawner> make_spawner(SpawnOptions options);

// The agent on this very machine: a child process, no shell, no copy.
class LocalSpawner : public Spawner {
 public:
  explicit LocalSpawner(const SpawnOptions& options) : options_(options) {}
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override;
  std::string route(const HostTarget& host) override;
  std::string advice_if_lost(const HostTarget& host) override;

 private:
  const SpawnOptions& options_;
};

// Reports once what is wrong with the way to all hosts, before any of them is connected to: checks
// the program of --rsh, whether a host's user, port and key can be passed on to it, and the key
// files that were named. Throws Error(kStart), and Error(kUsage) for an --rsh that is no command or
// takes no user, port or key.
void check_way(const SpawnOptions& options, const std::vector<HostTarget>& targets);
// The same with its options; may be empty.
using WayCheck = std::function<void(const std::vector<HostTarget>&)>;

}  // namespace hv::launcher
