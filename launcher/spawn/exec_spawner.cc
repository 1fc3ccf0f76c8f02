// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/exec_spawner.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "launcher/spawn/bootstrap.h"
#include "launcher/spawn/loader_settings.h"
#include "launcher/spawn/process_channel.h"
#include "launcher/spawn/ssh/identity_file.h"
#include "launcher/spawn/ssh/ssh_advice.h"
#include "launcher/spawn/ssh/ssh_config_query.h"
#include "launcher/spawn/start_line.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::string file_name(const std::string& program) { return program.substr(program.rfind('/') + 1); }

// In ssh's words; rsh has the first of them, too.
void add_login(std::vector<std::string>* words, const HostTarget& host) {
  if (!host.user.empty()) words->insert(words->end(), {"-l", host.user});
  if (host.port != 0) words->insert(words->end(), {"-p", std::to_string(host.port)});
  if (!host.identity_file.empty()) words->insert(words->end(), {"-i", host.identity_file});
  if (!host.address.empty()) words->insert(words->end(), {"-o", host_name_option(host.address)});
}

[[noreturn]] void refuse_accept_new(const std::string& program) {
  throw Error(ErrorKind::kUsage,
              "--ssh-accept-new cannot be passed on: hosts are reached by '" + printable(program) +
                  "' (--rsh), whose program is not named ssh",
              "leave out --ssh-accept-new, and let that command accept new keys by itself");
}

}  // namespace

bool is_ssh(const std::string& program) { return file_name(program) == "ssh"; }

void check_login(const std::string& program, const HostTarget& host) {
  if (is_ssh(program)) return;
  std::string what;
  if (!host.identity_file.empty())
    what = "key " + printable(host.identity_file) + " (-i, identity=)";
  if (host.port != 0) what = "port " + std::to_string(host.port) + " (-p, port=)";
  if (!host.user.empty() && file_name(program) != "rsh")
    what = "user '" + printable(host.user) + "' (-l, user@host, user=)";
  if (what.empty()) return;
  throw Error(ErrorKind::kUsage,
              "reach host " + printable(host.name) + ": " + what + " cannot be passed on to '" +
                  printable(program) + "' (--rsh), which is not named ssh",
              "put it into the command itself, in that program's own words, and leave it out here; "
              "or --rsh ssh");
}

void check_name(const HostTarget& host) {
  if (!host.name.empty() && host.name[0] != '-' && (host.user.empty() || host.user[0] != '-'))
    return;
  throw Error(ErrorKind::kUsage,
              "host '" + host.user + (host.user.empty() ? "" : "@") + host.name + "' is no name",
              "names do not begin with '-'");
}

std::vector<std::string> split_command(const std::string& text) {
  const auto words = shell_words(text);
  if (words && !words->empty()) return *words;
  throw Error(ErrorKind::kUsage,
              "'" + text + "' is no command" + (words ? "" : ": a quote is not closed"),
              "write it as in a shell: --rsh 'ssh -J gateway'");
}

std::vector<std::string> system_ssh_command(const HostTarget& host, bool accept_new_host_keys,
                                            Duration timeout) {
  check_name(host);
  const auto seconds =
      std::max<long long>(1, std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
  std::vector<std::string> words{"ssh", "-T",
                                 "-a",  "-x",
                                 "-e",  "none",
                                 "-o",  "BatchMode=yes",
                                 "-o",  "ClearAllForwardings=yes",
                                 "-o",  "PermitLocalCommand=no",
                                 "-o",  "RemoteCommand=none",
                                 "-o",  "ControlMaster=no",
                                 "-o",  "ConnectTimeout=" + std::to_string(seconds),
                                 "-o"};
  words.push_back(std::string("StrictHostKeyChecking=") +
                  (accept_new_host_keys ? "accept-new" : "yes"));
  add_login(&words, host);
  words.insert(words.end(), {"--", host.name});
  return words;
}

boost::asio::awaitable<std::unique_ptr<AgentChannel>> ExecSpawner::start(HostTarget host) {
  check_name(host);
  std::vector<std::string> words = split_command(options_.remote_shell);
  const bool by_ssh = is_ssh(words[0]);
  check_login(words[0], host);
  if (by_ssh) check_identity_file(host.identity_file);
  if (options_.accept_new_host_keys) {
    if (!by_ssh) refuse_accept_new(words[0]);
    // Before the command's own options: ssh takes the first value that it is given.
    words.insert(words.begin() + 1, {"-o", "StrictHostKeyChecking=accept-new"});
  }
  // Another program is not told ssh's way where else to connect to.
  const std::string name = by_ssh || host.address.empty() ? host.name : host.address;
  if (!by_ssh) host.address.clear();
  add_login(&words, host);
  words.push_back(name);
  StartDeadline deadline(co_await boost::asio::this_coro::executor, options_.start_timeout);
  HostAdvice advice = ssh_host_advice({host.name, host.port, by_ssh});
  if (!by_ssh)
    advice.if_it_ends =
        "see whether --rsh runs the command on that host and hands on what goes in "
        "and out: echo there | " +
        printable(options_.remote_shell) + " " + name + " cat";
  if (!by_ssh) {
    std::function<void()> nothing;
    co_return co_await start_by(std::move(words), std::move(advice), deadline, std::move(nothing));
  }
  const std::string gate = co_await query_login_gate(words, name, options_, deadline);
  const LateHosts::Attempt attempt = [this, &words, &advice, &gate, &deadline] {
    return start_by_ssh(words, advice, gate, deadline);
  };
  co_return co_await late_.start_when_there(host.name, false, deadline, attempt);
}

std::string ExecSpawner::route(const HostTarget&) {
  return printable(options_.remote_shell) + " (--rsh)";
}

std::string ExecSpawner::advice_if_lost(const HostTarget&) {
  return "log in there by ssh and look";
}

boost::asio::awaitable<std::unique_ptr<AgentChannel>> ExecSpawner::start_by(
    std::vector<std::string> words, HostAdvice host, StartDeadline& deadline,
    std::function<void()> has_logged_in) {
  words.push_back(start_line());
  Command command;
  command.argv = std::move(words);
  command.environment = options_.environment.entries();
  const auto executor = co_await boost::asio::this_coro::executor;
  const std::string doing = "start the agent on host " + host.host;
  auto channel = std::make_unique<ProcessChannel>(executor, command, AtClose::kTerminate, doing);
  bool has_answered = false;  // then what failed may be a program of the host
  std::function<void()> note_answer = [&has_answered, &has_logged_in] {
    has_answered = true;
    if (has_logged_in) has_logged_in();
  };
  BootstrapPlan plan{host, options_.build_id, agent_, agent_words(options_), note_answer};
  std::string reason;
  try {
    co_return co_await bootstrap_agent(std::move(channel), std::move(plan), deadline);
  } catch (const EndedEarly& error) {
    if (has_answered || !is_loader_failure(error.words()) ||
        !remove_loader_settings(&command.environment))
      throw;
    reason = error.words();
  }
  warn_of_loader_settings(command.argv[0], reason);
  channel = std::make_unique<ProcessChannel>(executor, command, AtClose::kTerminate, doing);
  plan = {std::move(host), options_.build_id, agent_, agent_words(options_), note_answer};
  co_return co_await bootstrap_agent(std::move(channel), std::move(plan), deadline);
}

boost::asio::awaitable<std::unique_ptr<AgentChannel>> ExecSpawner::start_by_ssh(
    std::vector<std::string> words, HostAdvice host, std::string gate, StartDeadline& deadline) {
  const auto login = co_await logins_.acquire(std::move(gate), host.host, deadline);
  // Named: GCC 12 destroys a temporary of a co_await expression twice.
  std::function<void()> release = [login] { login->release(); };
  try {
    co_return co_await start_by(std::move(words), std::move(host), deadline, std::move(release));
  } catch (const EndedEarly& error) {
    if (is_refused_login(error.words())) throw LoginRefused(error);
    throw;
  }
}

}  // namespace hv::launcher
