// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/lanes.h"

#include <poll.h>

#include <cstring>
#include <set>
#include <utility>

#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

// How far one transfer has come.
class Moving {
 public:
  Moving(const Transfer& transfer, int rank, int fd)
      : transfer_(transfer), rank_(rank), fd_(fd), is_gone_(fd < 0) {}

  bool is_done() const { return is_compared_ && out_ == sizeof(Label) && moved_ == bytes(); }
  std::pair<int, bool> lane() const { return {transfer_.peer, transfer_.is_sent}; }

  // What waits for the socket now.
  pollfd wants() const {
    if (is_gone_) return {-1, 0, 0};
    const bool moves = is_compared_ && moved_ < bytes();
    const bool writes = out_ < sizeof(Label) || (moves && transfer_.is_sent);
    const bool reads = !is_compared_ || (moves && !transfer_.is_sent);
    return {fd_, static_cast<short>((writes ? POLLOUT : 0) | (reads ? POLLIN : 0)), 0};
  }

  // True: something has moved.
  bool go_on() {
    bool has_moved = write(&transfer_.label, sizeof(Label), &out_);
    if (!is_compared_) {
      has_moved |= read(&theirs_, sizeof(Label), &in_);
      if (in_ == sizeof(Label)) compare();
    }
    if (!is_compared_ || out_ < sizeof(Label)) return has_moved;
    return (transfer_.is_sent ? write(transfer_.at, bytes(), &moved_)
                              : read(transfer_.at, bytes(), &moved_)) ||
           has_moved;
  }

 private:
  std::size_t bytes() const { return transfer_.label.bytes; }

  bool write(const void* from, std::size_t bytes, std::size_t* done) {
    if (is_gone_ || *done == bytes) return false;
    return count(send_some(fd_, static_cast<const std::byte*>(from) + *done, bytes - *done), done);
  }

  bool read(void* to, std::size_t bytes, std::size_t* done) {
    if (is_gone_ || *done == bytes) return false;
    return count(receive_some(fd_, static_cast<std::byte*>(to) + *done, bytes - *done), done);
  }

  bool count(std::ptrdiff_t moved, std::size_t* done) {
    is_gone_ = moved < 0;
    if (moved <= 0) return false;
    *done += static_cast<std::size_t>(moved);
    return true;
  }

  void compare() {
    const std::string own = transfer_.label.words(), other = theirs_.words();
    if (own != other)
      refuse("rank " + std::to_string(rank_) + " has " + own + " where rank " +
             std::to_string(transfer_.peer) + " has " + other);
    is_compared_ = true;
  }

  const Transfer transfer_;
  const int rank_;
  const int fd_;
  Label theirs_;
  std::size_t out_ = 0;    // of the own label
  std::size_t in_ = 0;     // of theirs
  std::size_t moved_ = 0;  // of the bytes
  bool is_compared_ = false;
  bool is_gone_;
};

// The first of each lane that is not done; empty: all are.
std::vector<Moving*> heads_of(std::vector<Moving>& all) {
  std::vector<Moving*> heads;
  std::set<std::pair<int, bool>> lanes;
  for (Moving& one : all)
    if (!one.is_done() && lanes.insert(one.lane()).second) heads.push_back(&one);
  return heads;
}

}  // namespace

std::string Label::words() const {
  static const char* const names[] = {
      "ncclAllReduce",        "ncclAllGather",    "ncclReduceScatter",      "ncclBroadcast",
      "ncclSend or ncclRecv", "ncclCommFinalize", "ncclCommWindowRegister", "ncclCommShrink"};
  const auto number = static_cast<std::size_t>(call);
  return std::string(number < std::size(names) ? names[number] : "nothing known") + " (count " +
         std::to_string(count) + ", type " + std::to_string(type) + ", reduction " +
         std::to_string(reduction) + ", root " + std::to_string(root) + ", " +
         std::to_string(bytes) + " bytes" +
         (place == 0 ? ")" : ", in a window at " + std::to_string(place - 1) + ")");
}

Lanes::Lanes(int rank, std::vector<UniqueFd> to, std::vector<UniqueFd> from)
    : rank_(rank), to_(std::move(to)), from_(std::move(from)) {}

bool Lanes::exchange(const std::vector<Transfer>& transfers, const StopSign& stop,
                     const StopSign* other_stop) {
  std::vector<Moving> all;
  for (const Transfer& one : transfers) {
    const auto peer = static_cast<std::size_t>(one.peer);
    all.emplace_back(one, rank_, (one.is_sent ? to_ : from_)[peer].get());
  }
  while (!stop.is_set() && (other_stop == nullptr || !other_stop->is_set())) {
    const std::vector<Moving*> heads = heads_of(all);
    if (heads.empty()) return true;
    bool has_moved = false;
    for (Moving* const one : heads) has_moved |= one->go_on();
    if (has_moved) continue;
    std::vector<pollfd> polled = {{stop.fd(), POLLIN, 0}};
    if (other_stop != nullptr) polled.push_back({other_stop->fd(), POLLIN, 0});
    for (const Moving* const one : heads) polled.push_back(one->wants());
    ::poll(polled.data(), polled.size(), -1);
  }
  return false;
}

}  // namespace hv::fake
