// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/operation.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

// A collective in progress: the operation with the host's views of its memory.
class Collective {
 public:
  Collective(const Operation& operation, Lanes& lanes, const StopSign& stop)
      : operation_(operation),
        lanes_(lanes),
        stop_(stop),
        ranks_(static_cast<std::size_t>(lanes.ranks())),
        rank_(static_cast<std::size_t>(lanes.rank())),
        element_(element_bytes(operation.type)),
        bytes_(operation.count * element_) {}

  bool run() {
    switch (operation_.call) {
      case Call::kAllReduce:
        return allreduce();
      case Call::kAllGather:
        return allgather();
      case Call::kReduceScatter:
        return reducescatter();
      default:
        return broadcast();
    }
  }

 private:
  // Of each rank: the elements that it reduces.
  std::size_t slice_begin(std::size_t rank) const { return operation_.count * rank / ranks_; }
  std::size_t slice_count(std::size_t rank) const {
    return slice_begin(rank + 1) - slice_begin(rank);
  }

  Transfer transfer(std::size_t peer, bool is_sent, std::byte* at, std::size_t bytes) const {
    const int root = operation_.call == Call::kBroadcast ? operation_.peer : 0;
    return {static_cast<int>(peer), is_sent, at,
            Label{operation_.call, operation_.type, operation_.reduction.kind, root,
                  operation_.count, bytes, operation_.place}};
  }

  // What lies at `from` for each peer goes there; `count` elements of each peer's are reduced, in
  // the order of ranks, to `to`.
  template <class PartOf>
  bool scatter_and_reduce(PartOf part_of, std::byte* to, std::size_t count) {
    std::vector<std::vector<std::byte>> rooms(ranks_);
    std::vector<const std::byte*> parts(ranks_);
    std::vector<Transfer> transfers;
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      const auto [begin, elements] = part_of(peer);
      parts[peer] = begin;
      if (peer == rank_) continue;
      rooms[peer].resize(count * element_);
      parts[peer] = rooms[peer].data();
      transfers.push_back(transfer(peer, true, begin, elements * element_));
      transfers.push_back(transfer(peer, false, rooms[peer].data(), count * element_));
    }
    if (!lanes_.exchange(transfers, stop_)) return false;
    reduce(parts, to, count, operation_.type, operation_.reduction);
    return true;
  }

  // Each rank's part of `to` goes to every other.
  template <class PartOf>
  bool gather(PartOf part_of) {
    std::vector<Transfer> transfers;
    const auto [own, own_bytes] = part_of(rank_);
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      const auto [begin, bytes] = part_of(peer);
      transfers.push_back(transfer(peer, true, own, own_bytes));
      transfers.push_back(transfer(peer, false, begin, bytes));
    }
    return lanes_.exchange(transfers, stop_);
  }

  // Each rank reduces its slice and gives it to all: 2 times the bytes of the tensor on every lane.
  bool allreduce() {
    std::byte* const from = host_view(operation_.from, bytes_);
    std::byte* const to = host_view(operation_.to, bytes_);
    refuse_overlap(from, bytes_, to, bytes_, to);
    const auto slice_of = [&](std::size_t rank) {
      return std::pair(from + slice_begin(rank) * element_, slice_count(rank));
    };
    if (!scatter_and_reduce(slice_of, to + slice_begin(rank_) * element_, slice_count(rank_)))
      return false;
    return gather([&](std::size_t rank) {
      return std::pair(to + slice_begin(rank) * element_, slice_count(rank) * element_);
    });
  }

  bool allgather() {
    std::byte* const from = host_view(operation_.from, bytes_);
    std::byte* const to = host_view(operation_.to, bytes_ * ranks_);
    refuse_overlap(from, bytes_, to, bytes_ * ranks_, to + rank_ * bytes_);
    std::memmove(to + rank_ * bytes_, from, bytes_);
    return gather([&](std::size_t rank) { return std::pair(to + rank * bytes_, bytes_); });
  }

  bool reducescatter() {
    std::byte* const from = host_view(operation_.from, bytes_ * ranks_);
    std::byte* const to = host_view(operation_.to, bytes_);
    refuse_overlap(to, bytes_, from, bytes_ * ranks_, from + rank_ * bytes_);
    return scatter_and_reduce(
        [&](std::size_t rank) { return std::pair(from + rank * bytes_, operation_.count); }, to,
        operation_.count);
  }

  // Who is not the root meets the others, too, without any bytes.
  bool broadcast() {
    const auto root = static_cast<std::size_t>(operation_.peer);
    std::byte* const to = host_view(operation_.to, bytes_);
    std::byte* const from = rank_ == root ? host_view(operation_.from, bytes_) : to;
    refuse_overlap(from, bytes_, to, bytes_, to);
    std::vector<Transfer> transfers;
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      transfers.push_back(transfer(peer, true, from, rank_ == root ? bytes_ : 0));
      transfers.push_back(transfer(peer, false, to, peer == root ? bytes_ : 0));
    }
    if (!lanes_.exchange(transfers, stop_)) return false;
    if (from != to) std::memcpy(to, from, bytes_);
    return true;
  }

  // The only place in the large buffer where the small one may lie is `in_place`.
  static void refuse_overlap(const std::byte* small, std::size_t small_bytes,
                             const std::byte* large, std::size_t large_bytes,
                             const std::byte* in_place) {
    if (small != in_place && small < large + large_bytes && large < small + small_bytes)
      refuse("the buffers of a collective overlap otherwise than in place");
  }

  const Operation& operation_;
  Lanes& lanes_;
  const StopSign& stop_;
  const std::size_t ranks_;
  const std::size_t rank_;
  const std::size_t element_;
  const std::size_t bytes_;
};

// What a rank sends to itself, in the order of both.
void copy_to_itself(const std::vector<Transfer>& sent, const std::vector<Transfer>& received) {
  if (sent.size() != received.size()) refuse("a rank sends to itself and does not receive it");
  for (std::size_t number = 0; number < sent.size(); ++number) {
    if (sent[number].label.words() != received[number].label.words())
      refuse("a rank sends to itself " + sent[number].label.words() + " and receives " +
             received[number].label.words());
    std::memmove(received[number].at, sent[number].at, sent[number].label.bytes);
  }
}

bool send_and_receive(const std::vector<Operation>& operations, Lanes& lanes,
                      const StopSign& stop) {
  std::vector<Transfer> transfers, own_sent, own_received;
  for (const Operation& one : operations) {
    if (one.call != Call::kSendReceive) continue;
    const bool is_sent = one.to == nullptr;
    const std::size_t bytes = one.count * element_bytes(one.type);
    const Transfer transfer{one.peer, is_sent, host_view(is_sent ? one.from : one.to, bytes),
                            Label{one.call, one.type, 0, 0, one.count, bytes}};
    if (one.peer != lanes.rank())
      transfers.push_back(transfer);
    else
      (is_sent ? own_sent : own_received).push_back(transfer);
  }
  copy_to_itself(own_sent, own_received);
  return lanes.exchange(transfers, stop);
}

}  // namespace

bool perform(const std::vector<Operation>& operations, Lanes& lanes, const StopSign& stop) {
  for (const Operation& one : operations)
    if (one.hangs) return await_readable({}, stop) >= 0;
  for (const Operation& one : operations)
    if (one.call != Call::kSendReceive && !Collective(one, lanes, stop).run()) return false;
  return send_and_receive(operations, lanes, stop);
}

bool meet(Call call, std::uint64_t bytes, Lanes& lanes, const StopSign& stop) {
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < lanes.ranks(); ++peer) {
    if (peer == lanes.rank()) continue;
    transfers.push_back({peer, true, nullptr, Label{call, 0, 0, 0, bytes, 0}});
    transfers.push_back({peer, false, nullptr, Label{call, 0, 0, 0, bytes, 0}});
  }
  return lanes.exchange(transfers, stop);
}

}  // namespace hv::fake
