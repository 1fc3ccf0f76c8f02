// SPDX-License-Identifier: Apache-2.0
#include "bench/ranks/forked_store.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "src/base/check.h"
#include "src/base/clock.h"

namespace hv {
namespace {

constexpr int kMaxRanks = 64;
constexpr std::size_t kTableBytes = 64 << 10;
constexpr std::size_t kReasonBytes = 256;

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t seen, TimePoint deadline) {
  const timespec limit = time_left(deadline);
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void append_text(std::string* table, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  table->append(reinterpret_cast<const char*>(&size), sizeof size);
  table->append(text);
}

std::string take_text(const char** at) {
  std::uint32_t size;
  std::memcpy(&size, *at, sizeof size);
  std::string text(*at + sizeof size, size);
  *at += sizeof size + size;
  return text;
}

}  // namespace

// A rank writes only its own table, before a fence; others read it after that fence. Fences use two
// tables in turn: one may be written for the next fence while slower ranks still read what the last
// one published.
struct ForkedStoreHub::Tables {
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<std::uint32_t> fences{0};  // futex word: fences opened, and one for each loss
  std::atomic<std::uint32_t> losses{0};
  int event_fds[kMaxRanks];
  struct Loss {
    int rank;
    char reason[kReasonBytes];
  } loss[kMaxRanks];
  struct Table {
    std::uint32_t bytes;
    char text[kTableBytes];
  } table[2][kMaxRanks];
};

class ForkedStore : public Store {
 public:
  ForkedStore(ForkedStoreHub& hub, int rank) : hub_(hub), tables_(*hub.tables_), rank_(rank) {}

  // Later values come first in the table, so that a search finds the newest.
  Status put(const std::string& key, const std::string& value) override {
    std::string entry;
    append_text(&entry, key);
    append_text(&entry, value);
    mine_ = entry + mine_;
    if (mine_.size() > kTableBytes)
      return {StatusCode::kMemory, "publish '" + key + "': the table is full"};
    return Status::success();
  }

  Status fence(std::chrono::milliseconds timeout) override {
    const TimePoint deadline = now() + timeout;
    const std::uint32_t goal = ++passed_;
    auto& table = tables_.table[goal % 2][rank_];
    std::memcpy(table.text, mine_.data(), mine_.size());
    table.bytes = static_cast<std::uint32_t>(mine_.size());
    if (tables_.arrived.fetch_add(1) + 1 == goal * static_cast<std::uint32_t>(hub_.size_))
      return open_fence();
    while (tables_.arrived.load() < goal * static_cast<std::uint32_t>(hub_.size_)) {
      const std::uint32_t seen = tables_.fences.load();
      if (tables_.losses.load() > 0)
        return {StatusCode::kPeerLost, "meet the other ranks: a rank has ended"};
      if (tables_.arrived.load() >= goal * static_cast<std::uint32_t>(hub_.size_)) break;
      if (now() >= deadline) return {StatusCode::kSystem, "meet the other ranks: timed out"};
      futex_wait(&tables_.fences, seen, deadline);
    }
    return Status::success();
  }

  Status get(int rank, const std::string& key, std::string* value) override {
    const auto& table = tables_.table[passed_ % 2][rank];
    for (const char* at = table.text; at < table.text + table.bytes;) {
      const bool found = take_text(&at) == key;
      *value = take_text(&at);
      if (found) return Status::success();
    }
    return {StatusCode::kPeerLost, "rank " + std::to_string(rank) + " published no '" + key + "'"};
  }

  Status job_key(JobKey* key) override {
    *key = hub_.key_;
    return Status::success();
  }
  void report(const RankReport&) override {}
  int event_fd() const override { return tables_.event_fds[rank_]; }

  bool next_event(PeerEvent* event) override {
    std::uint64_t count;
    if (::read(event_fd(), &count, sizeof count) < 0 && seen_losses_ == tables_.losses.load())
      return false;
    if (seen_losses_ == tables_.losses.load()) return false;
    const auto& loss = tables_.loss[seen_losses_++];
    *event = {loss.rank, loss.reason};
    return true;
  }

 private:
  Status open_fence() {
    tables_.fences.fetch_add(1);
    ::syscall(SYS_futex, &tables_.fences, FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
    return Status::success();
  }

  ForkedStoreHub& hub_;
  ForkedStoreHub::Tables& tables_;
  const int rank_;
  std::string mine_;
  std::uint32_t passed_ = 0;
  std::uint32_t seen_losses_ = 0;
};

ForkedStoreHub::ForkedStoreHub(int size, const JobKey& key) : key_(key), size_(size) {
  HV_CHECK(size >= 1 && size <= kMaxRanks, "a forked job has at most 64 ranks");
  void* memory =
      ::mmap(nullptr, sizeof(Tables), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HV_CHECK(memory != MAP_FAILED, "shared memory for the store");
  tables_ = new (memory) Tables;
  for (int rank = 0; rank < size; ++rank) {
    tables_->event_fds[rank] = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    HV_CHECK(tables_->event_fds[rank] >= 0, "an eventfd for each rank of a forked job");
  }
}

ForkedStoreHub::~ForkedStoreHub() {
  for (int rank = 0; rank < size_; ++rank) ::close(tables_->event_fds[rank]);
  ::munmap(tables_, sizeof(Tables));
}

std::unique_ptr<Store> ForkedStoreHub::store(int rank) {
  return std::make_unique<ForkedStore>(*this, rank);
}

void ForkedStoreHub::announce_loss(int rank, const std::string& reason) {
  auto& loss = tables_->loss[tables_->losses.load()];
  loss.rank = rank;
  reason.copy(loss.reason, kReasonBytes - 1);
  tables_->losses.fetch_add(1);
  tables_->fences.fetch_add(1);
  ::syscall(SYS_futex, &tables_->fences, FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
  for (int other = 0; other < size_; ++other) {
    const std::uint64_t one = 1;
    if (other != rank)
      HV_CHECK(::write(tables_->event_fds[other], &one, sizeof one) == sizeof one, "eventfd");
  }
}

}  // namespace hv
