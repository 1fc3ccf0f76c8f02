// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/selection.h"

#include <sys/resource.h>

#include <algorithm>
#include <system_error>

#include "runtime/transport/inproc/inproc_source.h"
#include "runtime/transport/io_thread.h"
#include "runtime/transport/mesh_fabric.h"
#include "runtime/transport/placement.h"
#include "runtime/transport/shm/host_meeting.h"
#include "runtime/transport/shm/host_memory.h"
#include "runtime/transport/shm/shared_heap.h"
#include "runtime/transport/tcp/tcp_meeting.h"
#include "src/base/clock.h"
#include "src/base/core_mask.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

// What a rank publishes first: the contract it was born with, and where its host's memory is handed
// out.
struct Card {
  std::int32_t local_rank = 0;
  std::int32_t local_size = 0;
  std::int32_t cross_rank = 0;
  std::uint64_t slot_bytes = 0;
  std::uint32_t streams = 1;          // rank 0's counts
  std::uint64_t peer_timeout_ms = 0;  // rank 0's counts
  std::uint64_t heap_bytes = 0;       // the least of a host counts
  std::string memory_name;            // leaders only
  CoreMask cores;                     // that it may use
  void fields(auto& a) {
    a(local_rank, local_size, cross_rank, slot_bytes, streams, peer_timeout_ms, heap_bytes,
      memory_name, cores);
  }
};

// Heaps are large before anything of them is used: too large under a limit on sizes.
bool is_memory_limited() {
  for (const auto kind : {RLIMIT_AS, RLIMIT_FSIZE}) {
    rlimit limit{};
    if (::getrlimit(kind, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return true;
  }
  return false;
}

// How many any of those ranks may use; at least 1.
int count_cores_of(const std::vector<int>& ranks, const std::vector<Card>& cards) {
  CoreMask all;
  for (const int rank : ranks) unite(&all, cards[static_cast<std::size_t>(rank)].cores);
  return std::max(1, count_cores(all));
}

class Joining {
 public:
  Joining(const RankIdentity& identity, Store& store, const FabricConfig& config)
      : identity_(identity), store_(store), config_(config), meeting_(terms()) {}

  std::unique_ptr<Fabric> run(Status* status);

 private:
  MeetingTerms terms() const;
  Status exchange_cards();
  Status adopt_settings();
  Status find_hosts();
  Status share_memory(MappedMemory* memory);
  Status connect_hosts(RemoteTransport* remote);
  Status publish_and_fence(const char* key, const std::string& value);
  HostGeometry geometry() const;
  std::string keyed(const char* key) const {
    return std::string("fabric/") + std::to_string(config_.epoch) + "/" + key;
  }

  const RankIdentity& identity_;
  Store& store_;
  FabricConfig config_;
  JobKey key_{};
  HostMeeting meeting_;
  std::vector<Card> cards_;
  Topology topology_;
  std::vector<WatchedPeer> watched_;
};

MeetingTerms Joining::terms() const {
  MeetingTerms terms;
  terms.job_id = identity_.job_id;
  terms.key = key_;
  terms.rank = identity_.rank;
  terms.epoch = config_.epoch;
  terms.timeout = config_.connect_timeout;
  return terms;
}

HostGeometry Joining::geometry() const {
  HostGeometry geometry;
  geometry.ranks = static_cast<int>(topology_.local_ranks.size());
  if (config_.slot_bytes != 0) geometry.slot_bytes = config_.slot_bytes;
  if (geometry.ranks == 1) return geometry;  // nobody else would look there
  geometry.heap_bytes = kHeapBytes;
  for (const int rank : topology_.local_ranks)
    geometry.heap_bytes = std::min<std::size_t>(
        geometry.heap_bytes,
        cards_[static_cast<std::size_t>(rank)].heap_bytes / kPageBytes * kPageBytes);
  return geometry;
}

Status Joining::publish_and_fence(const char* key, const std::string& value) {
  if (Status status = store_.put(keyed(key), value); !status.ok()) return status;
  return store_.fence(config_.meeting_timeout);
}

Status Joining::exchange_cards() {
  Card card;
  card.local_rank = identity_.local_rank;
  card.local_size = identity_.local_size;
  card.cross_rank = identity_.cross_rank;
  card.slot_bytes = config_.slot_bytes;
  card.streams = static_cast<std::uint32_t>(config_.streams);
  card.peer_timeout_ms = static_cast<std::uint64_t>(config_.peer_timeout.count());
  card.cores = own_cores();
  if (!is_memory_limited()) card.heap_bytes = config_.heap_bytes;
  const bool shares = config_.local == LocalTransport::kShm && identity_.local_size > 1;
  if (shares && identity_.local_rank == 0)
    if (Status status = meeting_.listen(&card.memory_name); !status.ok()) return status;
  if (Status status = publish_and_fence("card", encode(card)); !status.ok()) return status;
  for (int rank = 0; rank < identity_.size; ++rank) {
    std::string text;
    if (Status status = store_.get(rank, keyed("card"), &text); !status.ok()) return status;
    cards_.emplace_back();
    if (!decode(text, &cards_.back()) || cards_.back().slot_bytes != config_.slot_bytes)
      return {StatusCode::kContract,
              "join the job: rank " + std::to_string(rank) +
                  " runs another version of libhvrun, or with other settings"};
  }
  return adopt_settings();
}

// What both ends of a connection must do alike is what rank 0 does.
Status Joining::adopt_settings() {
  const Card& zero = cards_.front();
  if (zero.streams < 1 || zero.streams > static_cast<std::uint32_t>(kMostStreams) ||
      zero.peer_timeout_ms > static_cast<std::uint64_t>(INT32_MAX))
    return {StatusCode::kContract,
            "join the job: rank 0 asks for " + std::to_string(zero.streams) +
                " streams and a peer timeout of " +
                format_duration(Seconds(static_cast<double>(zero.peer_timeout_ms) / 1e3))};
  config_.streams = static_cast<int>(zero.streams);
  config_.peer_timeout = std::chrono::milliseconds(zero.peer_timeout_ms);
  return Status::success();
}

// The contract says who should share a host; whoever cannot reach its host's leader is a host of
// its own.
Status Joining::find_hosts() {
  std::vector<RankIdentity> identities(cards_.size());
  for (std::size_t r = 0; r < cards_.size(); ++r) {
    identities[r].rank = static_cast<int>(r);
    identities[r].local_rank = cards_[r].local_rank;
    identities[r].local_size = cards_[r].local_size;
    identities[r].cross_rank = cards_[r].cross_rank;
  }
  std::vector<int> host_of;
  if (Status status = hosts_from_contract(identities, &host_of); !status.ok()) return status;
  topology_ = make_topology(identity_.rank, host_of);
  if (config_.local == LocalTransport::kInproc) return Status::success();
  const int host = topology_.host_of[static_cast<std::size_t>(identity_.rank)];
  const int leader = topology_.leaders[static_cast<std::size_t>(host)];
  const bool reached = leader == identity_.rank ||
                       meeting_.reach(cards_[static_cast<std::size_t>(leader)].memory_name);
  if (Status status = publish_and_fence("reached", reached ? "yes" : "no"); !status.ok())
    return status;
  for (int rank = 0; rank < identity_.size; ++rank) {
    std::string text;
    if (Status status = store_.get(rank, keyed("reached"), &text); !status.ok()) return status;
    if (text != "yes") host_of[static_cast<std::size_t>(rank)] = identity_.size + rank;
  }
  topology_ = make_topology(identity_.rank, host_of);
  return Status::success();
}

Status Joining::share_memory(MappedMemory* memory) {
  const HostGeometry shape = geometry();
  const int host = topology_.host_of[static_cast<std::size_t>(identity_.rank)];
  if (shape.ranks > kMaxLocalRanks)
    return {StatusCode::kUnsupported, "join the job: " + std::to_string(shape.ranks) +
                                          " ranks on one host, at most " +
                                          std::to_string(kMaxLocalRanks) + " can share memory"};
  if (config_.local == LocalTransport::kInproc || shape.ranks == 1) {
    const std::string scope =
        shape.ranks == 1 ? "rank" + std::to_string(identity_.rank) : "host" + std::to_string(host);
    *memory = inproc_memory(identity_.job_id + "/" + std::to_string(config_.epoch) + "/" + scope,
                            shape.total_bytes());
    return Status::success();
  }
  const int leader = topology_.leaders[static_cast<std::size_t>(host)];
  if (leader != identity_.rank) return meeting_.follow(leader, shape, memory, &watched_);
  const std::vector<int> members(topology_.local_ranks.begin() + 1, topology_.local_ranks.end());
  return meeting_.lead(members, shape, memory, &watched_);
}

Status Joining::connect_hosts(RemoteTransport* remote) {
  if (topology_.leaders.size() == 1) return Status::success();
  TcpMeeting tcp(terms(), topology_,
                 {config_.addresses, config_.ports, config_.interfaces, config_.streams});
  std::string mine;
  if (Status status = tcp.listen(&mine); !status.ok()) return status;
  if (Status status = publish_and_fence("addresses", mine); !status.ok()) return status;
  for (int rank = 0; rank < identity_.size; ++rank) {
    std::string text;
    if (Status status = store_.get(rank, keyed("addresses"), &text); !status.ok()) return status;
    if (Status status = tcp.set_addresses(rank, text); !status.ok()) return status;
  }
  return tcp.connect_all(remote);
}

std::unique_ptr<Fabric> Joining::run(Status* status) {
  MappedMemory memory;
  RemoteTransport remote;
  if (identity_.size > 1) {
    if (*status = store_.job_key(&key_); !status->ok()) return nullptr;
    meeting_ = HostMeeting(terms());
    if (*status = exchange_cards(); !status->ok()) return nullptr;
    if (*status = find_hosts(); !status->ok()) return nullptr;
    topology_.usable_cores = count_cores_of(topology_.local_ranks, cards_);
  } else {
    topology_ = make_topology(0, {0});
  }
  if (*status = share_memory(&memory); !status->ok()) return nullptr;
  if (*status = connect_hosts(&remote); !status->ok()) return nullptr;
  auto host = std::make_unique<HostMemory>(std::move(memory), geometry(), local_index(topology_));
  return std::make_unique<MeshFabric>(topology_, std::move(host), config_, store_,
                                      std::move(watched_), std::move(remote));
}

}  // namespace

std::unique_ptr<Fabric> connect_fabric(const RankIdentity& identity, Store& store,
                                       const FabricConfig& config, Status* status) {
  try {
    return Joining(identity, store, config).run(status);
  } catch (const std::system_error& error) {  // no more descriptors or threads
    *status = io_trouble("join the job: begin to watch the other ranks", error);
    return nullptr;
  }
}

}  // namespace hv::runtime
