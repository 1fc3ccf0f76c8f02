// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/check_run.h"

#include <algorithm>
#include <utility>

#include "launcher/agent/helper_program.h"
#include "launcher/agent/ranks/rank_command.h"
#include "launcher/facts/exec_limit.h"
#include "launcher/probes/host_probe.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr auto kMostCheckTime = std::chrono::minutes(1);

// The environment of a rank, without the variables that number the ranks.
std::vector<std::string> environment_of_probes(const wire::CheckRequest& request,
                                               const Environment& own) {
  wire::Launch launch;
  launch.programs.emplace_back();
  if (!request.programs.empty()) launch.programs[0].directory = request.programs[0].directory;
  launch.environment = request.environment;
  launch.host_variables = request.host_variables;
  return RankEnvironments(launch, own).of_rank({}).entries();
}

}  // namespace

CheckRun::CheckRun(EventLoop& loop, const Environment& own, const wire::CheckRequest& request,
                   Done done)
    : loop_(loop), done_(std::move(done)), probes_(request.probes) {
  const Status kept = keep_in_memory("hvrun-check", encode(request), &request_);
  if (kept.ok())
    start(request, own);
  else
    finish(kept.message, "");
}

void CheckRun::start(const wire::CheckRequest& request, const Environment& own) {
  ChildQuestion question;
  question.name = "it";  // follows the name of each probe
  question.command.argv = {"hvrun-agent", kProbe};
  question.command.program = "/proc/self/exe";
  question.command.environment = environment_of_probes(request, own);
  if (const auto problem = exec_size_problem("a program", question.command.argv,
                                             question.command.environment, exec_limits()))
    return refuse_environment(request, *problem);
  question.stdin_fd = request_.get();
  question.time = std::min<Duration>(bounded_seconds(request.timeout_s), kMostCheckTime);
  question.most_bytes = wire::kMaxProbeBytes * host_probes().size();
  child_ = std::make_unique<ChildAnswer>(
      loop_, question, [this](const std::string& problem, const std::string& answers) {
        finish(problem.empty() ? "it answered with what is no answer" : problem, answers);
      });
}

void CheckRun::refuse_environment(const wire::CheckRequest& request, const wire::Problem& problem) {
  constexpr const char* kPrograms = "program";
  for (const HostProbe& probe : host_probes())
    if (is_requested(probe, probes_) && probe.name != std::string_view(kPrograms))
      reply_.unanswered.push_back({probe.name, problem.what});
  for (const wire::Program& program : request.programs) {
    if (program.argv.empty()) continue;  // the only one: the user named no program
    wire::ProgramFacts& facts = reply_.programs.emplace_back();
    facts.path = program.argv[0];
    facts.problem = problem.what;
    facts.advice = problem.hint;
  }
  send_reply();
}

void CheckRun::finish(const std::string& problem, const std::string& answers) {
  std::vector<bool> has_answered(host_probes().size());
  for (const auto& [probe, bytes] : parse_probe_answers(answers)) {
    wire::CheckReply part;
    if (has_answered[probe] || !decode(bytes, &part)) continue;
    has_answered[probe] = true;
    for (wire::UnansweredProbe& gap : part.unanswered) reply_.unanswered.push_back(std::move(gap));
    host_probes()[probe].merge(std::move(part), &reply_);
  }
  for (std::size_t i = 0; i < has_answered.size(); ++i)
    if (!has_answered[i] && is_requested(host_probes()[i], probes_))
      reply_.unanswered.push_back({host_probes()[i].name, problem});
  send_reply();
}

// Answers from the loop: the caller may be child_, which done_ destroys, or the constructor.
void CheckRun::send_reply() {
  over_ = loop_.call_after(Duration::zero(), [this] {
    const Done done = std::move(done_);
    const wire::CheckReply reply = std::move(reply_);
    done(reply);
  });
}

Handled CheckService::handle(const Frame& frame) {
  return handle_as<wire::CheckRequest>(
      frame, [this](const wire::CheckRequest& request) { return begin(request); });
}

bool CheckService::begin(const wire::CheckRequest& request) {
  if (run_) return false;
  run_ = std::make_unique<CheckRun>(agent_.loop, agent_.environment, request,
                                    [this](const wire::CheckReply& reply) {
                                      agent_.link.send(reply);
                                      run_.reset();
                                      agent_.on_answer();
                                    });
  return true;
}

}  // namespace hv::launcher
