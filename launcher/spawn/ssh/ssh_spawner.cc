// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_spawner.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "launcher/allocation/host_identity.h"
#include "launcher/allocation/host_names.h"
#include "launcher/spawn/bootstrap.h"
#include "launcher/spawn/connect.h"
#include "launcher/spawn/loader_settings.h"
#include "launcher/spawn/resolve.h"
#include "launcher/spawn/ssh/identity_file.h"
#include "launcher/spawn/ssh/ssh_advice.h"
#include "launcher/spawn/ssh/ssh_channel.h"
#include "launcher/spawn/ssh/ssh_library.h"
#include "launcher/spawn/start_line.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// Hosts that are left to the system's ssh for one reason are named in one line.
constexpr auto kTellTogether = std::chrono::milliseconds(150);

// libssh gave up, and the system's ssh might not: Kerberos.
struct LeftToSystemSsh {
  std::string reason;
};

// Whether the user requested a login, or ssh's configuration has another route to the host.
bool states_login(const HostTarget& host, const SshChoice& choice) {
  return !host.user.empty() || host.port != 0 || !host.identity_file.empty() ||
         choice.has_own_route;
}

// Before anything is connected. Another OpenSSL in LD_LIBRARY_PATH keeps libssh from opening, and
// not the system's ssh, which runs without that variable if need be. A libssh that is itself
// missing or broken ("libssh.so.4: ...", "libssh.so.4 has no ...") is an error.
void open_libssh(const Environment& environment) {
  std::vector<std::string> entries = environment.entries();
  try {
    libssh();
  } catch (const Error& error) {
    const std::string reason = error.what();
    const bool is_libssh = reason.find("libssh.so.4:") != std::string::npos ||
                           reason.find("libssh.so.4 has no") != std::string::npos;
    if (is_libssh || !remove_loader_settings(&entries)) throw;
    throw LeftToSystemSsh{
        "it does not open, perhaps because of your LD_LIBRARY_PATH or LD_PRELOAD: " +
        std::string(error.what())};
  }
}

std::string where(const HostKeyVerdict& verdict) {
  return verdict.file + " line " + std::to_string(verdict.line);
}

}  // namespace

asio::awaitable<std::unique_ptr<AgentChannel>> SshSpawner::start(HostTarget host) {
  check_identity_file(host.identity_file);
  StartDeadline deadline(co_await asio::this_coro::executor, options_.start_timeout);
  const SshChoice choice = co_await query_ssh_config(host, options_, deadline);
  const std::function<asio::awaitable<Channel>()> attempt = [this, &host, &choice, &deadline] {
    return start_as_chosen(host, choice, deadline);
  };
  co_return co_await late_.start_when_there(host.name, options_.reach.may_come_late, deadline,
                                            attempt);
}

std::string SshSpawner::route(const HostTarget& host) {
  if (own_names_.count(host.name) > 0) return local_.route(host);
  return told_.count(host.name) > 0 ? "the system's ssh" : "SSH";
}

std::string SshSpawner::advice_if_lost(const HostTarget& host) {
  if (own_names_.count(host.name) > 0) return local_.advice_if_lost(host);
  return exec_.advice_if_lost(host);
}

asio::awaitable<SshSpawner::Channel> SshSpawner::start_as_chosen(const HostTarget& host,
                                                                 const SshChoice& choice,
                                                                 StartDeadline& deadline) {
  std::string reason = choice.system_ssh_reason;
  std::vector<SocketAddress> addresses;
  if (reason.empty() || !states_login(host, choice)) {
    addresses = co_await find_host(host, choice, deadline);
    if (addresses.empty()) {
      own_names_.insert(host.name);
      co_return co_await local_.start(host);
    }
  }
  if (reason.empty()) {
    try {
      co_return co_await start_by_libssh(host, choice.config, std::move(addresses), deadline);
    } catch (const LeftToSystemSsh& left) {
      reason = left.reason;
    }
  }
  co_return co_await start_by_system_ssh(host, choice, reason, deadline);
}

asio::awaitable<SshSpawner::Channel> SshSpawner::start_by_system_ssh(const HostTarget& host,
                                                                     const SshChoice& choice,
                                                                     const std::string& reason,
                                                                     StartDeadline& deadline) {
  tell_system_ssh(co_await asio::this_coro::executor, host.name, reason);
  const bool accept_new =
      options_.accept_new_host_keys || choice.config.host_keys != HostKeyPolicy::kKnown;
  std::vector<std::string> words = system_ssh_command(host, accept_new, options_.start_timeout);
  HostAdvice advice =
      ssh_host_advice({host.name, host.port, true, choice.config.host_keys == HostKeyPolicy::kOff});
  try {
    co_return co_await exec_.start_by_ssh(std::move(words), std::move(advice), choice.gate,
                                          deadline);
  } catch (const EndedEarly& error) {
    if (may_pass_by_itself(error.words())) throw NotThereYet(error);
    throw;
  }
}

asio::awaitable<SshSpawner::Channel> SshSpawner::start_by_libssh(
    const HostTarget& host, const SshConfig& config, std::vector<SocketAddress> addresses,
    StartDeadline& deadline) {
  open_libssh(options_.environment);
  const KnownKeys known = find_known_keys(config.known_hosts, config.host_name, config.port);
  if (known.has_authority())
    throw LeftToSystemSsh{"a certificate authority vouches for its key (known_hosts)"};
  const auto session =
      co_await log_in_by_libssh(host, config, known, std::move(addresses), deadline);
  auto channel = std::make_unique<SshChannel>(session);
  {
    const auto phase =
        deadline.enter("run a command on host " + host.name, "try 'ssh " + host.name + " true'",
                       [session] { session->close(); });
    std::string why;
    const bool runs = co_await channel->execute(start_line(), &why);
    deadline.throw_if_passed();
    if (!runs)
      throw Error(ErrorKind::kStart, "run a command on host " + host.name + ": " + why,
                  "try 'ssh " + host.name + " true'");
  }
  BootstrapPlan plan{ssh_host_advice({host.name, host.port}), options_.build_id, agent_,
                     agent_words(options_)};
  co_return co_await bootstrap_agent(std::move(channel), std::move(plan), deadline);
}

asio::awaitable<std::vector<SocketAddress>> SshSpawner::find_host(const HostTarget& host,
                                                                  const SshChoice& choice,
                                                                  StartDeadline& deadline) {
  const SshConfig& config = choice.config;
  const ResolveQuery query{host.name, config.host_name, config.port, config.family};
  if (states_login(host, choice)) co_return co_await resolve(query, deadline);
  std::vector<SocketAddress> addresses;
  if (is_own_name(config.host_name)) co_return addresses;
  try {
    addresses = co_await resolve(query, deadline);
  } catch (const NotThereYet&) {
    // A name that the resolver does not know may still be a form of this machine's own.
    if (!is_same_host(host.name, own_hostname())) throw;
    co_return addresses;
  }
  const bool is_here = std::all_of(addresses.begin(), addresses.end(),
                                   [](const auto& each) { return is_own_address(each.ip()); });
  if (is_here) addresses.clear();
  co_return addresses;
}

asio::awaitable<std::shared_ptr<SshSession>> SshSpawner::log_in_by_libssh(
    const HostTarget& host, const SshConfig& config, const KnownKeys& known,
    std::vector<SocketAddress> addresses, StartDeadline& deadline) {
  const std::string gate = addresses.front().text();
  const auto counted = co_await logins_.acquire(gate, host.name, deadline);
  const auto session = co_await connect(host, config, known, addresses, deadline);
  check_host_key(*session, host, config, known);
  {
    const auto phase = deadline.enter("log in to host " + host.name + " as '" + config.user + "'",
                                      "see whether 'ssh -o BatchMode=yes " + host.name +
                                          " true' is slow, or the ssh-agent waits for you",
                                      [session] { session->close(); });
    const auto refusal = co_await log_in(*session, config, host.name, agent_socket(config));
    deadline.throw_if_passed();
    if (refusal && refusal->gssapi_is_left)
      throw LeftToSystemSsh{"it takes Kerberos (GSSAPIAuthentication), and no key of yours"};
    if (refusal)
      throw Error(ErrorKind::kStart, "log in to host " + host.name + ": " + refusal->reason,
                  refusal->hint);
  }
  co_return session;
}

asio::awaitable<std::shared_ptr<SshSession>> SshSpawner::connect(
    const HostTarget& host, const SshConfig& config, const KnownKeys& known,
    const std::vector<SocketAddress>& addresses, StartDeadline& deadline) {
  Connection connection = co_await connect_first(host.name, addresses, deadline);
  const std::string peer = host.name + " (" + connection.address.text() + ")";
  const auto session = std::make_shared<SshSession>(
      co_await asio::this_coro::executor, std::move(connection.socket), config, known.types());
  const std::string hint =
      "see that an ssh server, and nothing else, listens there: ssh -v " + host.name;
  const auto phase = deadline.enter("agree on encryption with host " + peer, hint,
                                    [session] { session->close(); });
  const int result =
      co_await session->until_done([&session] { return libssh().ssh_connect(session->raw()); });
  deadline.throw_if_passed();
  if (result != SSH_OK) {
    const std::string doing = "agree on encryption with host " + peer + ": ";
    const std::string reason = session->error();
    if (is_refused_login(reason))
      throw LoginRefused(Error(ErrorKind::kStart, doing + reason, refused_login_advice()));
    throw NotThereYet(Error(ErrorKind::kStart, doing + reason, hint));
  }
  co_return session;
}

void SshSpawner::check_host_key(SshSession& session, const HostTarget& host,
                                const SshConfig& config, const KnownKeys& known) const {
  using Kind = HostKeyVerdict::Kind;
  const HostKey key = host_key_of(session, host.name);
  const HostKeyVerdict verdict = judge_host_key(known, key.base64);
  const std::string name = known_hosts_name(config.host_name, config.port);
  const std::string shown = key.type + " " + key.fingerprint;
  switch (verdict.kind) {
    case Kind::kKnown:
      return;
    case Kind::kRevoked:
      throw Error(
          ErrorKind::kStart,
          "check the key of host " + host.name + ": " + shown + " is REVOKED by " + where(verdict),
          "do not log in there; ask the host's administrator");
    case Kind::kChanged:
      throw Error(ErrorKind::kStart,
                  "check the key of host " + host.name + ": THE KEY HAS CHANGED: it now shows " +
                      shown + ", not the one in " + where(verdict) +
                      ". Somebody may be listening in",
                  changed_key_advice(name, verdict.file, config.host_keys == HostKeyPolicy::kOff));
    case Kind::kUnknown:
      break;
  }
  if (!options_.accept_new_host_keys && config.host_keys == HostKeyPolicy::kKnown) {
    throw Error(ErrorKind::kStart,
                "check the key of host " + host.name + ": it is not known here; it shows " + shown,
                unknown_key_advice({host.name, host.port}));
  }
  append_known_host(config.known_hosts.front(), name, key.type, key.base64);
  HV_LOG(kInfo, "ssh") << "host " << host.name << " is new: its key " << shown << " is now in "
                       << config.known_hosts.front();
}

void SshSpawner::tell_system_ssh(asio::any_io_executor executor, const std::string& host,
                                 const std::string& reason) {
  if (!told_.insert(host).second) return;
  const bool is_first = untold_->empty();
  (*untold_)[reason].push_back(host);
  if (!is_first) return;
  const auto timer = std::make_shared<asio::steady_timer>(std::move(executor), kTellTogether);
  timer->async_wait([timer, untold = untold_](const boost::system::error_code&) {
    for (const auto& [why, hosts] : *untold) {
      HV_LOG(kWarn, "ssh") << hosts_text(hosts)
                           << ": by the system's ssh, for what libssh lacks: " << why;
    }
    untold->clear();
  });
}

std::string SshSpawner::agent_socket(const SshConfig& config) const {
  return config.identity_agent.empty() ? options_.environment.get_or("SSH_AUTH_SOCK", "")
                                       : config.identity_agent;
}

}  // namespace hv::launcher
