// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmix_run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr auto kMostWiringTime = std::chrono::minutes(10);

// Leaves out what a launcher of this agent has set for its own PMIx and PMI; parameters stay.
Environment environment_of(const Environment& own, const std::string& library_path) {
  Environment result;
  for (const auto& [name, value] : own.all())
    if (name.rfind("PMIX_MCA_", 0) == 0 ||
        (name.rfind("PMIX_", 0) != 0 && name.rfind("PMI_", 0) != 0))
      result.set(name, value);
  if (!library_path.empty()) result.set("LD_LIBRARY_PATH", library_path);
  return result;
}

std::set<std::uint32_t> ranks_on(const wire::MpiWorld& world, std::uint32_t host) {
  std::set<std::uint32_t> ranks;
  for (std::size_t rank = 0; rank < world.host_of_rank.size(); ++rank)
    if (world.host_of_rank[rank] == host) ranks.insert(static_cast<std::uint32_t>(rank));
  return ranks;
}

}  // namespace

PmixRun::PmixRun(EventLoop& loop, const Environment& environment, const std::string& programs,
                 const wire::WiringRequest& request, PmixCallbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      host_(request.host),
      process_(loop, {[this](const Frame& frame) { return handle(frame); },
                      [this] { report_if_lost(); }}),
      rendezvous_(ranks_on(request.world, request.host), request.world.host_of_rank.size()) {
  start(environment, programs, request);
}

PmixRun::~PmixRun() {
  loop_.cancel(deadline_);
  loop_.cancel(answer_);
}

void PmixRun::start(const Environment& environment, const std::string& programs,
                    const wire::WiringRequest& request) {
  UniqueFd file;
  std::string program = programs + kPmixName;
  if (!request.program.empty()) {
    if (const Status status = keep_in_memory(kPmixName, request.program, &file); !status.ok())
      return fail(status.message);
    program = path_in_memory(file);
  } else if (!belongs_to_agent(program)) {
    return answer({true, {}, {}});
  }
  if (const Status status = directory_.create(); !status.ok()) return fail(status.message);
  const Status status = process_.start(program, environment_of(environment, request.library_path));
  if (!status.ok()) return fail(status.message);
  const Duration time = std::min<Duration>(bounded_seconds(request.timeout_s), kMostWiringTime);
  deadline_ = loop_.call_after(time, [this, time] {
    process_.kill();
    fail(std::string(kPmixName) + " did not answer within " + format_duration(time) +
         " and was killed");
  });
  process_.send(encode_frame_of(wire::PmixJob{request.world, host_, directory_.path()}));
}

bool PmixRun::handle(const Frame& frame) {
  if (state_ == State::kStarting) {
    wire::PmixReady ready;
    if (frame.type != static_cast<std::uint8_t>(wire::PmixType::kReady) ||
        !decode(frame.payload, &ready))
      return false;
    accept(std::move(ready));
    return true;
  }
  wire::PmixClient client;
  wire::PmixFence fence;
  if (frame.type == static_cast<std::uint8_t>(wire::PmixType::kClient)) {
    if (!decode(frame.payload, &client)) return false;
    if (client.has_ended)
      rendezvous_.finalize(client.rank);
    else
      rendezvous_.begin(client.rank);
  } else if (frame.type == static_cast<std::uint8_t>(wire::PmixType::kFence)) {
    if (!decode(frame.payload, &fence)) return false;
    rendezvous_.come_to_fence(fence.number);
    callbacks_.on_fence(
        {wire::kPmixEpoch, fence.number, {{host_, std::string(), std::move(fence.bytes)}}});
  } else {
    return false;
  }
  callbacks_.on_change();
  return true;
}

wire::MpiEnd PmixRun::rank_ended(std::uint32_t rank) {
  process_.read_last_frames();
  const wire::MpiEnd end = rendezvous_.note_end(rank);
  callbacks_.on_change();
  return end;
}

void PmixRun::accept(wire::PmixReady ready) {
  if (!ready.problem.empty()) return fail(ready.problem, ready.hint);
  for (auto& [rank, pairs] : ready.variables) variables_[rank] = std::move(pairs);
  defaults_ = std::move(ready.defaults);
  answer({});
}

void PmixRun::pass(const wire::FenceOut& out) {
  wire::PmixFence fence{out.number, {}};
  for (const wire::FencePut& put : out.puts) fence.bytes += put.value;
  process_.send(encode_frame_of(fence));
  rendezvous_.pass(out.number);
  callbacks_.on_change();
}

void PmixRun::prepare(std::uint32_t rank, RankEnvironment* environment) const {
  for (const auto& [name, value] : defaults_) environment->set_default(name, value);
  const auto own = variables_.find(rank);
  if (own != variables_.end()) environment->set_all(own->second);
}

void PmixRun::let_go() {
  state_ = State::kLetGo;
  process_.hang_up();
}

void PmixRun::report_if_lost() {
  const std::optional<std::string> outcome = process_.outcome();
  if (!outcome || state_ == State::kLetGo) return;
  const std::string text = std::string(kPmixName) + " " + *outcome;
  if (state_ == State::kStarting) return fail(text);
  state_ = State::kLetGo;
  callbacks_.on_loss(text);
}

void PmixRun::fail(const std::string& problem, const std::string& hint) {
  answer({false, problem, hint});
}

// Answers from the loop, so that the caller of the constructor holds the run before it answers.
void PmixRun::answer(wire::WiringReply reply) {
  loop_.cancel(deadline_);
  if (state_ != State::kStarting) return;
  state_ = reply.problem.empty() && !reply.is_missing ? State::kReady : State::kLetGo;
  answer_ = loop_.call_after(Duration::zero(),
                             [this, reply = std::move(reply)] { callbacks_.on_ready(reply); });
}

}  // namespace hv::launcher
