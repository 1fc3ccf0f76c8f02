// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/mesh_fabric.h"

#include <poll.h>

#include <algorithm>

#include "runtime/transport/placement.h"
#include "src/base/log.h"

namespace hv::runtime {
namespace {

// Every rank's first cell is for all ranks.
std::vector<SlotRings::Place> first_cells(const Topology& topology) {
  std::vector<SlotRings::Place> places;
  for (int local = 0; local < static_cast<int>(topology.local_ranks.size()); ++local)
    places.push_back({local, 0});
  return places;
}

}  // namespace

MeshFabric::MeshFabric(Topology topology, std::unique_ptr<HostMemory> memory,
                       const FabricConfig& config, Store& store, std::vector<WatchedPeer> watched,
                       RemoteTransport remote)
    : topology_(std::move(topology)),
      memory_(std::move(memory)),
      rings_(*memory_, first_cells(topology_), local_index(topology_)),
      config_(config),
      moved_(config.moved ? config.moved : std::make_shared<MovedBytes>()),
      step_report_(config.step_report ? config.step_report : std::make_shared<StepReport>()),
      stall_report_(config.stall_report ? config.stall_report : std::make_shared<StallReport>()),
      store_(store),
      local_(std::make_unique<ShmTransport>(*memory_, topology_.local_ranks)),
      remote_(std::move(remote)),
      router_(
          topology_.rank, topology_.size,
          [this](int rank, const std::string& what) {
            mark_lost(rank, {StatusCode::kPeerLost, "rank " + std::to_string(rank) + " " + what});
          }),
      is_suspect_(static_cast<std::size_t>(topology_.size)),
      peer_watch_(topology_, config.peer_timeout, config.connect_timeout),
      lost_ranks_(static_cast<std::size_t>(topology_.size)),
      doorbell_(*memory_, io_, remote_.poll_fd),
      io_([this] { doorbell_.ring(); }) {
  memory_->count_into(moved_);
  router_.add(*local_);
  if (remote_.transport) router_.add(*remote_.transport);
  if (remote_.poll_fd >= 0) io_.watch_when_armed(remote_.poll_fd);
  if (store.event_fd() >= 0) io_.watch(store.event_fd(), &has_store_event_);
  for (auto& peer : watched) {
    watches_.push_back(std::make_unique<Watch>());
    watches_.back()->peer = std::move(peer);
    const WatchedPeer& kept = watches_.back()->peer;
    io_.watch(kept.pidfd ? kept.pidfd.get() : kept.socket.get(), &watches_.back()->ended);
  }
  if (peer_watch_.beat().count() > 0) io_.beat_every(peer_watch_.beat(), &is_beat_due_);
  peer_watch_.speak(*local_, remote_.pulse);
  if (topology_.size > 1) io_.start();
}

MeshFabric::~MeshFabric() = default;

void MeshFabric::progress() {
  if (remote_.transport) remote_.transport->progress();
  router_.progress();
  if (has_store_event_.load(std::memory_order_relaxed)) take_store_events();
  if (is_beat_due_.load(std::memory_order_relaxed)) {
    look_for_silence();
    look_whether_alone();
  }
  if (step_report_->has_news() && !is_closing_) step_report_->send_if_due(store_, now());
  if (stall_report_->has_news() && !is_closing_) stall_report_->send(store_);
  look_for_suspects();
  if (!suspects_.empty()) judge_suspects();
  if (is_healthy()) adopt_loss_of_host();
}

Channel& MeshFabric::channel(int rank, int lane) {
  const auto& here = topology_.local_ranks;
  const bool is_local = lane == kPairLane && std::binary_search(here.begin(), here.end(), rank);
  auto& bytes = is_local ? moved_->shared_memory : moved_->tcp;
  CountedChannel& channel = channels_.try_emplace({rank, lane}, bytes).first->second;
  channel.stand_for(is_local ? local_->channel(rank, lane)
                             : remote_.transport->channel(rank, lane));
  return channel;
}

void MeshFabric::take_store_events() {
  if (!config_.take_store_events) return;
  has_store_event_ = false;
  PeerEvent event;
  while (store_.next_event(&event)) {
    if (event.kind != PeerEvent::Kind::kLost) {
      peer_watch_.allow_silence(event.kind == PeerEvent::Kind::kSilenceAllowed);
      continue;
    }
    if (event.rank < 0 || event.rank >= topology_.size) {
      HV_LOG(kWarn, "transport") << "the agent tells the loss of rank " << event.rank
                                 << ", which this job does not have";
      continue;
    }
    if (event.rank == topology_.rank || has_left(event.rank)) continue;
    mark_lost(event.rank,
              {StatusCode::kPeerLost, "rank " + std::to_string(event.rank) + " " + event.reason});
  }
}

void MeshFabric::look_for_suspects() {
  for (const auto& watch : watches_)
    if (watch->ended.load(std::memory_order_relaxed) && watch->ended.exchange(false))
      suspect(watch->peer.rank, "ended without leaving the job");
  if (!remote_.transport) return;
  for (const int peer : remote_.transport->peers())
    if (remote_.transport->state(peer) == PeerState::kSuspect)
      suspect(peer, remote_.transport->suspicion(peer));
}

void MeshFabric::suspect(int rank, const std::string& words) {
  if (is_suspect_[static_cast<std::size_t>(rank)] || has_left(rank)) return;
  is_suspect_[static_cast<std::size_t>(rank)] = true;
  suspects_.push_back({rank, now(), words});
  io_.set_ticking(true);
}

// Nobody who could tell more than we know: no reason to wait for it.
void MeshFabric::judge_suspects() {
  const auto grace = store_.event_fd() >= 0 ? config_.suspect_grace : std::chrono::milliseconds(0);
  std::erase_if(suspects_, [&](const Suspect& who) {
    if (now() - who.since < grace) return false;
    if (has_left(who.rank)) return true;
    const std::string reason = "rank " + std::to_string(who.rank) + " " + who.words;
    mark_lost(who.rank, {StatusCode::kPeerLost, reason});
    if (!is_closing_) store_.report(PeerLost{who.rank, who.words});
    return true;
  });
  if (suspects_.empty()) io_.set_ticking(false);
}

// Sockets were read before: what came while this process was stopped is heard first.
void MeshFabric::look_for_silence() {
  is_beat_due_ = false;
  for (const int rank : peer_watch_.tick(*local_, remote_.pulse)) {
    if (has_left(rank) || is_closing_) continue;
    const std::string words = peer_watch_.words();
    mark_lost(rank, {StatusCode::kPeerLost, "rank " + std::to_string(rank) + " " + words});
    store_.report(PeerLost{rank, words});
  }
}

// Who was held lost by the others, and lives, hears of it by nothing but their absence. What they
// have said before they left is taken in between two beats.
void MeshFabric::look_whether_alone() {
  const bool is_alone = !is_closing_ && is_healthy() && is_everybody_gone();
  if (is_alone && was_alone_) {
    const int other = topology_.rank == 0 ? 1 : 0;
    mark_lost(other, {StatusCode::kPeerLost,
                      "all other ranks have left the job; they may have held this one for lost"});
  }
  was_alone_ = is_alone;
}

void MeshFabric::adopt_loss_of_host() {
  int rank;
  std::string reason;
  if (memory_->read_loss(&rank, &reason)) mark_lost(rank, {StatusCode::kPeerLost, reason});
}

// Recorded first, and without memory: who hears of it gives tensors back that others of the host
// may be reading.
void MeshFabric::mark_lost(int rank, const Status& reason) {
  memory_->publish_loss(rank, reason.message);
  {
    std::lock_guard lock(loss_mutex_);
    if (lost_ranks_[static_cast<std::size_t>(rank)]) return;
    lost_ranks_[static_cast<std::size_t>(rank)] = true;
    if (loss_.ok()) loss_ = {StatusCode::kPeerLost, reason.message};
  }
  is_lost_.store(true, std::memory_order_release);
  router_.cut_off(rank, {StatusCode::kPeerLost, reason.message});
  doorbell_.ring();
}

Status MeshFabric::health() const {
  std::lock_guard lock(loss_mutex_);
  return loss_;
}

bool MeshFabric::has_left(int rank) const {
  const auto& here = topology_.local_ranks;
  if (std::binary_search(here.begin(), here.end(), rank))
    return local_->state(rank) == PeerState::kLeft;
  return remote_.transport->state(rank) == PeerState::kLeft;
}

bool MeshFabric::is_everybody_gone() const {
  std::lock_guard lock(loss_mutex_);
  for (int rank = 0; rank < topology_.size; ++rank)
    if (rank != topology_.rank && !lost_ranks_[static_cast<std::size_t>(rank)] && !has_left(rank))
      return false;
  return true;
}

// Control messages first, then the goodbye, then peers' goodbyes: after that nobody touches what is
// ours.
void MeshFabric::close(std::chrono::milliseconds timeout) {
  const TimePoint deadline = now() + timeout;
  is_closing_ = true;
  for (;;) {
    const std::uint32_t seen = doorbell_.value();
    progress();
    if (now() >= deadline) router_.drop_unsent();
    router_.say_goodbye();
    if ((!router_.has_unsent() && is_everybody_gone()) || now() >= deadline) return;
    doorbell_.wait(seen, deadline);
  }
}

}  // namespace hv::runtime
