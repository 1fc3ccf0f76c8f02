// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/pair_run.h"

#include <algorithm>
#include <utility>

#include "launcher/probes/pair_measure.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr auto kMostPairTime = std::chrono::minutes(1);
constexpr double kTimeToConnect_s = 2;

}  // namespace

PairRun::PairRun(EventLoop& loop, const JobKey& key, const std::string& job_id,
                 const wire::PairRequest& request, Done done)
    : loop_(loop),
      done_(std::move(done)),
      time_(std::min<Duration>(bounded_seconds(request.timeout_s), kMostPairTime)) {
  wire::ProbeRequest connect;
  connect.targets = request.targets;
  connect.timeout_s = std::min(request.timeout_s, kTimeToConnect_s);
  connect_ = std::make_unique<AddressProbe>(
      loop, key, job_id, connect, [this](const wire::ProbeReply& reply) { note_unreached(reply); },
      [this](std::uint32_t host, UniqueFd socket) { measure(host, std::move(socket)); });
}

void PairRun::measure(std::uint32_t host, UniqueFd socket) {
  ChildQuestion question;
  question.name = "the measure of the way";
  question.command.argv = {"hvrun-agent", kMeasure};
  question.command.program = "/proc/self/exe";
  question.stdin_fd = socket.get();
  question.time = time_;
  question.most_bytes = wire::kMaxProbeBytes;
  ++running_;
  children_.push_back(std::make_unique<ChildAnswer>(
      loop_, question, [this, host](const std::string& problem, const std::string& answer) {
        wire::PairMeasure measure;
        if (!problem.empty() || !decode(answer, &measure)) {
          measure = {};
          measure.problem = problem.empty() ? "it answered with what is no measure" : problem;
        }
        measure.host_id = host;
        reply_.measures.push_back(std::move(measure));
        --running_;
        finish_if_over();
      }));
}

void PairRun::note_unreached(const wire::ProbeReply& reply) {
  is_connecting_ = false;
  for (const wire::ProbeResult& result : reply.results) {
    if (!result.reached.empty()) continue;
    wire::PairMeasure measure;
    measure.host_id = result.host_id;
    measure.problem = result.reason;
    reply_.measures.push_back(std::move(measure));
  }
  finish_if_over();
}

bool PairRun::child_ended(pid_t pid, const ExitStatus& status) {
  return std::any_of(children_.begin(), children_.end(),
                     [&](const auto& child) { return child->child_ended(pid, status); });
}

// Answers from the loop: the caller may be a child or the probe, which done_ destroys.
void PairRun::finish_if_over() {
  if (is_connecting_ || running_ > 0) return;
  over_ = loop_.call_after(Duration::zero(), [this] {
    const Done done = std::move(done_);
    const wire::PairReply reply = std::move(reply_);
    done(reply);
  });
}

Handled PairService::handle(const Frame& frame) {
  const Handled handled = handle_as<wire::ProbeRequest>(
      frame, [this](const wire::ProbeRequest& request) { return probe(request); });
  if (handled != Handled::kNotMine) return handled;
  return handle_as<wire::PairRequest>(
      frame, [this](const wire::PairRequest& request) { return measure(request); });
}

bool PairService::probe(const wire::ProbeRequest& request) {
  if (probe_) return false;
  probe_ = std::make_unique<AddressProbe>(agent_.loop, agent_.setup.key, agent_.setup.job_id,
                                          request, [this](wire::ProbeReply reply) {
                                            agent_.link.send(reply);
                                            probe_.reset();
                                          });
  return true;
}

bool PairService::measure(const wire::PairRequest& request) {
  if (run_) return false;
  run_ = std::make_unique<PairRun>(agent_.loop, agent_.setup.key, agent_.setup.job_id, request,
                                   [this](const wire::PairReply& reply) {
                                     agent_.link.send(reply);
                                     run_.reset();
                                   });
  return true;
}

}  // namespace hv::launcher
