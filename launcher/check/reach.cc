// Does an agent start on every host? What a launch met on the way there is the finding.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "launcher/allocation/host_failures.h"
#include "launcher/allocation/host_names.h"
#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/text.h"
#include "src/wire/codec.h"

namespace hv::launcher {
namespace {

constexpr char kStops[] = "hvrun starts no rank before every host has answered";

// Of what launcher/spawn, the system's ssh and libssh say; the first that fits.
struct ReachSign {
  std::string_view words;
  const char* verdict;
};
constexpr ReachSign kSigns[] = {
    {"revoked", "host-key-changed"},
    {"key has changed", "host-key-changed"},
    {"identification has changed", "host-key-changed"},
    {"not known here", "host-key-unknown"},
    {"host key verification failed", "host-key-unknown"},
    {"could not resolve", "name-unknown"},
    {"name or service not known", "name-unknown"},
    {"no address associated", "name-unknown"},
    {"name resolution", "name-unknown"},
    {"no folder there can hold", "agent-not-copied"},
    {"start-up files print", "start-up-noise"},
    {"connection refused", "ssh-refused"},
    {"no route to host", "ssh-no-route"},
    {"network is unreachable", "ssh-no-route"},
    {"permission denied", "login-refused"},
    {"log in to host", "login-refused"},
    {"authentication", "login-refused"},
    {"another build", "agent-of-another-build"},
    {"machine, and this hvrun's agent is built for", "agent-of-another-kind"},
    {"no port of", "no-free-port"},
    {"timed out", "ssh-filtered"}};

std::string reach_finding(const FoldedFailure& failure) {
  const std::string words = lower(failure.text);
  for (const ReachSign& sign : kSigns)
    if (words.find(sign.words) != std::string::npos) return sign.verdict;
  if (failure.kind != ErrorKind::kTimeout) return "agent-not-started";
  return words.starts_with("connect to") ? "ssh-filtered" : "agent-late";
}

const Error& failure_of(const CheckInput& input, const std::string& name) {
  return *std::find_if(input.hosts.begin(), input.hosts.end(), [&](const CheckedHost& host) {
            return host.name == name && host.failure;
          })->failure;
}

bool has_no_answer(const wire::CheckReply& reply) {
  if (reply.unanswered.empty()) return false;
  wire::CheckReply answers = reply;
  answers.unanswered.clear();
  return encode(answers) == encode(wire::CheckReply{});
}

// Without an answer to any probe, whether ranks could start there is not known.
void judge_answers(const CheckInput& input, Judgement* judgement) {
  std::vector<HostFact> silent;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const CheckedHost& host = input.hosts[i];
    if (input.is_reached(i) && host.told && has_no_answer(*host.told))
      silent.emplace_back(host.name, host.told->unanswered[0].reason);
  }
  add_grouped("nothing-known", silent, judgement);
}

void judge_reach(const CheckInput& input, Judgement* judgement) {
  std::vector<HostFailure> failures;
  for (const CheckedHost& host : input.hosts)
    if (host.failure) failures.push_back({host.name, *host.failure});
  for (const FoldedFailure& folded : fold_failures(failures)) {
    std::string advice = folded.hint;
    // Where it names its host the others have another one.
    const bool is_for_all = std::all_of(
        folded.hosts.begin(), folded.hosts.end(),
        [&](const std::string& host) { return failure_of(input, host).hint() == advice; });
    if (!is_for_all) advice += likewise(folded.hosts);
    judgement->add(reach_finding(folded), folded.hosts,
                   hosts_text(folded.hosts) + ": " + folded.text, {{"ADVICE", advice}});
  }
  judge_answers(input, judgement);
}

}  // namespace

const Probe kReachProbe{
    "reach",
    "each host's name, sshd, host key, login, login shell, and hvrun's agent there",
    {{"name-unknown", Severity::kCannotStart, "a host's name has no address", kStops,
      "check the spelling of $HOST, or name it in /etc/hosts or ~/.ssh/config"},
     {"ssh-refused", Severity::kCannotStart,
      "the host refuses TCP connections to its ssh port: nobody listens there, or a firewall "
      "rejects them",
      kStops, "see that sshd runs on $HOST and listens on that port (-p)"},
     {"ssh-filtered", Severity::kCannotStart,
      "the host does not answer on its ssh port: it is down, or a firewall drops packets", kStops,
      "see that $HOST is up and that no firewall drops its ssh port"},
     {"ssh-no-route", Severity::kCannotStart, "this machine has no route to the host", kStops,
      "see that $HOST is up and that this machine has a route to it"},
     {"host-key-unknown", Severity::kCannotStart, "the host's key is not in known_hosts",
      "whoever answers by that name could be anybody",
      "connect once by 'ssh $HOST' and compare the fingerprint, or pass --ssh-accept-new"},
     {"host-key-changed", Severity::kCannotStart,
      "the host shows another key than known_hosts has, or a revoked one",
      "somebody may be listening in",
      "ask the host's administrator for its fingerprint; only if the change is theirs: ssh-keygen "
      "-R $HOST"},
     {"login-refused", Severity::kCannotStart,
      "the host takes none of this user's keys, and hvrun asks for no password", kStops,
      "give user and key (-l, -i), or let the host know a key: ssh-copy-id $HOST"},
     {"start-up-noise", Severity::kCannotStart,
      "the login shell's start-up files there print without end",
      "what they print comes before the agent's first word",
      "make them silent for commands that ssh runs"},
     {"agent-not-copied", Severity::kCannotStart,
      "no folder there can hold hvrun's agent and run it: full, read-only, or noexec", kStops,
      "free some space, or set XDG_CACHE_HOME or TMPDIR there to a folder that may hold programs"},
     {"agent-of-another-kind", Severity::kCannotStart,
      "the host is of another kind of machine than this hvrun is built for", kStops,
      "use hosts of one kind, or an hvrun that is built for that kind"},
     {"agent-of-another-build", Severity::kCannotStart,
      "the host has an hvrun-agent of another build", "both must be of one build",
      "install hvrun and hvrun-agent together"},
     {"no-free-port", Severity::kCannotStart,
      "all ports of HVRUN_PORT_RANGE are taken on a host, where its agent listens for the others",
      kStops, "widen HVRUN_PORT_RANGE, or see who has them: ssh $HOST ss -ltnp"},
     {"agent-late", Severity::kCannotStart, "no answer within --start-timeout", kStops,
      "raise --start-timeout, or look what keeps $HOST busy"},
     {"agent-not-started", Severity::kCannotStart, "the agent does not start, or ends", kStops,
      "log in there by ssh and see what the login shell and its start-up files do"},
     {"nothing-known", Severity::kCannotStart, "none of the checks on a host could be carried out",
      "whether ranks could start there is not known",
      "remove the reason that is given, and check again"}},
    judge_reach};

}  // namespace hv::launcher
