// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/mpi_service.h"

#include "launcher/agent/ranks/local_ranks.h"

namespace hv::launcher {
namespace {

MpiCallbacks callbacks_of(const ServiceContext& agent) {
  return {[&agent](const wire::FenceIn& fence) { agent.link.send(fence); },
          [&agent](std::uint32_t rank, int code) { agent.ranks.abort(rank, code); },
          [&agent](const std::string& text) { agent.link.send(wire::Note{text}); },
          [&agent](const wire::FenceStalled& stall) { agent.link.send(stall); },
          [&agent](const wire::MpiMissed& missed) { agent.link.send(missed); },
          [&agent](const wire::MpiBegun& begun) { agent.link.send(begun); }};
}

}  // namespace

MpiService::MpiService(const ServiceContext& agent, GuardBoard& board)
    : agent_(agent), board_(board), wiring_(agent.loop, callbacks_of(agent)) {}

Handled MpiService::handle(const Frame& frame) {
  return handle_as<wire::WiringRequest>(
      frame, [this](const wire::WiringRequest& request) { start(request); });
}

void MpiService::start(const wire::WiringRequest& request) {
  wiring_.start_pmix(agent_.environment, request,
                     [this](const wire::WiringReply& reply) { agent_.link.send(reply); });
  board_.write_mpi_directory(wiring_.directory());
}

}  // namespace hv::launcher
