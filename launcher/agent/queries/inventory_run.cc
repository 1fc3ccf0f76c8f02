// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/inventory_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "hvrun_version.h"
#include "launcher/agent/helper_program.h"
#include "launcher/agent/queries/own_gpu_use.h"
#include "launcher/agent/ranks/local_ranks.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

constexpr char kInventoryName[] = "hvrun-inventory";
constexpr auto kMostInventoryTime = std::chrono::minutes(10);

wire::InventoryReply read_answer(const std::string& problem, const std::string& answer) {
  wire::InventoryReply reply;
  reply.problem = problem;
  if (!problem.empty()) return reply;
  if (!decode(answer, &reply.inventory)) {
    reply.inventory = {};
    reply.problem = std::string(kInventoryName) + " answered with what is no inventory";
  } else if (reply.inventory.build != HVRUN_BUILD_ID) {
    reply.problem = std::string(kInventoryName) + " is of another build (" +
                    printable(reply.inventory.build) + ") than the agent";
    reply.inventory = {};
  }
  return reply;
}

}  // namespace

InventoryRun::InventoryRun(EventLoop& loop, const Environment& environment,
                           const std::string& directory, const wire::InventoryRequest& request,
                           Done done)
    : loop_(loop), done_(std::move(done)) {
  const Duration time = std::min<Duration>(bounded_seconds(request.timeout_s), kMostInventoryTime);
  const std::string program = directory + kInventoryName;
  if (!request.program.empty()) {
    const Status status = keep_in_memory(kInventoryName, request.program, &file_);
    if (status.ok())
      start(path_in_memory(file_), environment, time, request.whose_time);
    else
      answer_without_child({false, status.message, {}});
  } else if (belongs_to_agent(program)) {
    start(program, environment, time, request.whose_time);
  } else {
    answer_without_child({true, {}, {}});
  }
}

void InventoryRun::start(const std::string& program, const Environment& environment, Duration time,
                         const std::string& whose_time) {
  ChildQuestion question;
  question.name = kInventoryName;
  question.command.argv = {kInventoryName, "--wire"};
  question.command.program = program;
  question.command.environment = environment.entries();
  question.time = time;
  question.whose_time = whose_time;
  question.most_bytes = wire::kMaxInventoryBytes;
  child_ = std::make_unique<ChildAnswer>(
      loop_, question, [this](const std::string& problem, const std::string& answer) {
        const Done done = std::move(done_);
        done(read_answer(problem, answer));
      });
}

// Answers from the loop, because a child's answer comes from there, too.
void InventoryRun::answer_without_child(wire::InventoryReply reply) {
  no_child_ = loop_.call_after(Duration::zero(), [this, reply = std::move(reply)] {
    const Done done = std::move(done_);
    done(reply);
  });
}

Handled InventoryService::handle(const Frame& frame) {
  return handle_as<wire::InventoryRequest>(
      frame, [this](const wire::InventoryRequest& request) { return begin(request); });
}

// Once ranks run, the report leaves out what they use of the GPUs.
bool InventoryService::begin(const wire::InventoryRequest& request) {
  if (run_) return false;
  std::optional<OwnGpuUse> own;
  if (!agent_.ranks.all().empty()) own.emplace();
  run_ = std::make_unique<InventoryRun>(
      agent_.loop, agent_.environment, own_folder() + "/", request,
      [this, own = std::move(own)](wire::InventoryReply reply) mutable {
        if (own) own->leave_out_of(&reply.inventory);
        agent_.link.send(reply);
        run_.reset();
        agent_.on_answer();
      });
  return true;
}

}  // namespace hv::launcher
