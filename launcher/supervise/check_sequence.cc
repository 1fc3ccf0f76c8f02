// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/check_sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "launcher/allocation/host_names.h"
#include "launcher/check/ways.h"
#include "launcher/plan/job_spec.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// Requests all checks of the hosts. Before they are set up: ports on which an agent listens then
// must not count as taken.
void ask_hosts(LaunchContext& context) {
  Job& job = context.job;
  const wire::CheckRequest request = check_request(context, kProbeTimeout);
  for (Host& host : job.members()) {
    if (!is_reached(host)) continue;
    host.answers.checks.ask();
    host.send(request);
  }
}

asio::awaitable<void> await_checks(LaunchContext& context) {
  co_await await_hosts(
      context, "look at the host",
      [](const Host& host) { return host.answers.checks.reply() != nullptr; },
      answer_deadline(context.job) + kProbeTimeout);
}

std::vector<PairFacts> pairs_of(const TriedAddresses& tried) {
  std::vector<PairFacts> pairs;
  for (const ProbeOutcome& outcome : tried.outcomes) {
    PairFacts pair;
    pair.from = static_cast<std::size_t>(outcome.from);
    pair.to = static_cast<std::size_t>(outcome.to);
    if (pair.to >= tried.candidates.size()) continue;
    pair.tried = tried.candidates[pair.to];
    pair.reached = outcome.reached;
    pair.reason = outcome.reason;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

// By position in the epoch: a number that hosts on one machine have in common.
std::vector<std::size_t> machines_of(const Job& job) {
  std::vector<std::size_t> machines(job.members().size());
  std::iota(machines.begin(), machines.end(), std::size_t{0});
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const auto& set_up = job.members()[static_cast<std::ptrdiff_t>(i)].answers.set_up;
    if (!set_up || !set_up->shares_machine) continue;
    const std::optional<int> first = job.slots.position_of(HostId{set_up->first_here});
    if (!first) continue;
    const std::size_t joined = machines[i];
    std::replace(machines.begin(), machines.end(), joined,
                 machines[static_cast<std::size_t>(*first)]);
  }
  return machines;
}

// pairs: at most one from each host.
asio::awaitable<void> measure_pairs(LaunchContext& context, const std::vector<std::size_t>& pairs,
                                    CheckInput* input) {
  Job& job = context.job;
  const auto members = job.members();
  const auto host_at = [&members](std::size_t position) -> Host& {
    return members[static_cast<std::ptrdiff_t>(position)];
  };
  for (Host& host : members) host.answers.measurements.withdraw();
  for (const std::size_t i : pairs) {
    const PairFacts& pair = input->pairs[i];
    wire::PairRequest request;
    request.timeout_s = std::chrono::duration<double>(kProbeTimeout).count();
    const Host& target = host_at(pair.to);
    request.targets.push_back(
        {static_cast<std::uint32_t>(target.id), target.answers.set_up->probe_port, {pair.address}});
    Host& sender = host_at(pair.from);
    sender.answers.measurements.ask();
    sender.send(request);
  }
  co_await await_hosts(
      context, "measure the way to another host",
      [](const Host& host) { return !host.answers.measurements.is_open(); },
      answer_deadline(job) + kProbeTimeout);
  for (const std::size_t i : pairs) {
    PairFacts& pair = input->pairs[i];
    const wire::PairReply* const measured = host_at(pair.from).answers.measurements.reply();
    if (!measured) continue;
    for (const wire::PairMeasure& measure : measured->measures)
      if (HostId{measure.host_id} == host_at(pair.to).id)
        pair.measure = pair.measure ? better_measure(*pair.measure, measure) : measure;
  }
}

// Each host sends to the next one in a circle, all at once: every host sends and receives, whatever
// their number. Two names of one machine are no pair.
asio::awaitable<void> measure_paths(LaunchContext& context, CheckInput* input) {
  constexpr int kTimesAgain = 2;
  const std::vector<std::size_t> machines = machines_of(context.job);
  std::vector<std::size_t> circle;
  for (std::size_t i = 0; i < input->pairs.size(); ++i) {
    PairFacts& pair = input->pairs[i];
    if (pair.to != (pair.from + 1) % machines.size() || pair.reached.empty()) continue;
    if (machines[pair.from] == machines[pair.to]) continue;
    pair.address = pair.reached.front();
    circle.push_back(i);
  }
  co_await measure_pairs(context, circle, input);
  for (int again = 0; again < kTimesAgain; ++again) {
    std::vector<std::size_t> doubtful = doubtful_ways(*input);
    std::erase_if(doubtful, [&](std::size_t i) {
      return !is_reached(context.job.members()[static_cast<std::ptrdiff_t>(input->pairs[i].from)]);
    });
    if (doubtful.empty()) co_return;
    co_await measure_pairs(context, doubtful, input);
  }
}

// The part of a launch that needs a plan. checking: the time of the checks, which a launch does not
// have.
asio::awaitable<void> set_up_and_try(LaunchContext& context, Duration checking, CheckInput* input) {
  co_await set_up_hosts(context);
  input->same_machines = same_machines_of(context);
  context.phase("hosts are set up");
  const TriedAddresses tried = co_await probe_addresses(context);
  context.phase("addresses are tried");
  input->pairs = pairs_of(tried);
  input->seconds =
      std::chrono::duration<double>(now() - context.job.identity.begun - checking).count();
  co_await measure_paths(context, input);
  context.phase("ways between hosts are measured");
}

}  // namespace

std::string progress_of_check(const Job& job) {
  std::vector<std::string> unreached, unchecked;
  for (const Host& host : job.members()) {
    if (has_failed(host)) continue;
    if (!host.answers.greeting) unreached.push_back(host.target.name);
    if (!host.answers.checks.reply()) unchecked.push_back(host.target.name);
  }
  if (unchecked.empty()) return "";
  const auto describe = [&job](const char* text, const std::vector<std::string>& waited_for) {
    const std::size_t hosts = job.members().size();
    return std::to_string(hosts - waited_for.size()) + " of " + std::to_string(hosts) + text +
           hosts_text(waited_for);
  };
  if (!unreached.empty()) return describe(" hosts answer, not yet: ", unreached);
  return describe(" hosts have told what they are like, not yet: ", unchecked);
}

asio::awaitable<void> check_job(LaunchContext& context, CheckInput* input) {
  Job& job = context.job;
  context.goes_on_without_hosts = true;
  input->spec = job.spec;
  input->has_program = !job.spec.programs.at(0).argv.empty();
  begin_job(context);
  co_await connect_hosts(context);
  context.phase("agents answer");
  const TimePoint connected = now();
  ask_hosts(context);
  co_await take_inventories(context);
  co_await await_checks(context);
  context.phase("hosts have told");
  const Duration checking = now() - connected;
  try {
    plan_ranks(context);
    input->plan = job.plan();
  } catch (const Error& error) {
    input->plan_problem = error;
  }
  if (!input->plan_problem) co_await set_up_and_try(context, checking, input);
  input->hosts = checked_hosts(context);
}

}  // namespace hv::launcher
