// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/kubectl_spawner.h"

#include <boost/asio/this_coro.hpp>

#include "launcher/spawn/bootstrap.h"
#include "launcher/spawn/kubectl_advice.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

using Channel = std::unique_ptr<AgentChannel>;

// Ways of SSH that kubectl has not.
void check_reach(const HostTarget& host, bool accepts_new_keys) {
  const char* what = !host.user.empty()            ? "a user (-l, user@host)"
                     : host.port != 0              ? "a port (-p, port=)"
                     : !host.identity_file.empty() ? "a key (-i, identity=)"
                     : !host.address.empty()       ? "an address (address=)"
                     : accepts_new_keys            ? "--ssh-accept-new"
                                                   : nullptr;
  if (what != nullptr)
    throw Error(
        ErrorKind::kUsage,
        "host " + host.name + " is reached by kubectl, for which " + what + " means nothing",
        "leave it out; the pod's own settings say who its user is");
  check_name(host);
}

}  // namespace

KubectlCommand kubectl_of_hosts(const std::string& remote_shell, const HostReach& reach) {
  if (remote_shell.empty()) return reach.kubectl;
  const std::vector<std::string> words = split_command(remote_shell);
  return is_kubectl(words.front()) ? parse_kubectl_command(words, "--rsh") : KubectlCommand{};
}

bool KubectlSpawner::reaches_hosts() const {
  if (options_.remote_shell.empty()) return !options_.reach.kubectl.program.empty();
  return is_kubectl(split_command(options_.remote_shell).front());
}

KubectlCommand KubectlSpawner::command() const {
  return kubectl_of_hosts(options_.remote_shell, options_.reach);
}

asio::awaitable<Channel> KubectlSpawner::start(HostTarget host) {
  const KubectlCommand kubectl = command();
  check_reach(host, options_.accept_new_host_keys);
  StartDeadline deadline(co_await asio::this_coro::executor, options_.start_timeout);
  const LateHosts::Attempt attempt = [this, &kubectl, &host, &deadline] {
    return start_once(kubectl, host.name, deadline);
  };
  co_return co_await late_.start_when_there(host.name, true, deadline, attempt);
}

asio::awaitable<Channel> KubectlSpawner::start_once(const KubectlCommand& kubectl,
                                                    const std::string& pod,
                                                    StartDeadline& deadline) {
  std::vector<std::string> words = exec_words(kubectl, pod);
  words.insert(words.end(), {"/bin/sh", "-c"});
  HostAdvice advice = pod_advice(kubectl, pod);
  std::function<void()> nothing;
  try {
    co_return co_await exec_.start_by(std::move(words), std::move(advice), deadline,
                                      std::move(nothing));
  } catch (const EndedEarly& error) {
    if (judge_kubectl_words(error.words(), kubectl, pod).may_pass) throw NotThereYet(error);
    throw;
  }
}

std::string KubectlSpawner::route(const HostTarget&) { return "kubectl"; }

std::string KubectlSpawner::advice_if_lost(const HostTarget& host) {
  return describe_advice(command(), host.name);
}

}  // namespace hv::launcher
