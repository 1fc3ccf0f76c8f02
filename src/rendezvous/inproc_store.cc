// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/inproc_store.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "src/base/check.h"

namespace hv {

class InprocStore : public Store {
 public:
  InprocStore(InprocStoreHub& hub, int rank) : hub_(hub), rank_(rank) {}

  Status put(const std::string& key, const std::string& value) override {
    std::lock_guard lock(hub_.mutex_);
    hub_.unfenced_[{rank_, key}] = value;
    return Status::success();
  }

  Status fence(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(hub_.mutex_);
    if (++hub_.arrived_ == hub_.size_) {
      open_fence();
      return Status::success();
    }
    const std::uint64_t mine = hub_.fences_;
    const bool opened = hub_.changed_.wait_for(
        lock, timeout, [&] { return hub_.fences_ != mine || !hub_.lost_.empty(); });
    if (hub_.fences_ != mine) return Status::success();
    if (opened) return {StatusCode::kPeerLost, "meet the other ranks: " + hub_.lost_};
    return {StatusCode::kSystem, "meet the other ranks: only " + std::to_string(hub_.arrived_) +
                                     " of " + std::to_string(hub_.size_) + " came in time"};
  }

  Status get(int rank, const std::string& key, std::string* value) override {
    std::lock_guard lock(hub_.mutex_);
    const auto found = hub_.published_.find({rank, key});
    if (found == hub_.published_.end())
      return {StatusCode::kPeerLost,
              "rank " + std::to_string(rank) + " published no '" + key + "'"};
    *value = found->second;
    return Status::success();
  }

  Status job_key(JobKey* key) override {
    *key = hub_.key_;
    return Status::success();
  }

  void report(const RankReport& what) override {
    std::lock_guard lock(hub_.mutex_);
    std::visit([this](const auto& one) { note(one); }, what);
  }

  int event_fd() const override {
    return hub_.mailboxes_[static_cast<std::size_t>(rank_)].fd.get();
  }

  bool next_event(PeerEvent* event) override {
    std::lock_guard lock(hub_.mutex_);
    auto& mailbox = hub_.mailboxes_[static_cast<std::size_t>(rank_)];
    if (mailbox.events.empty()) return false;
    *event = mailbox.events.front();
    mailbox.events.pop_front();
    std::uint64_t count;
    if (mailbox.events.empty())
      HV_CHECK(::read(mailbox.fd.get(), &count, sizeof count) > 0, "eventfd");
    return true;
  }

 private:
  // One for each kind of report.
  void note(const PeerLost& lost) { hub_.reports_.emplace_back(lost.rank, lost.reason); }
  void note(const wire::StepTimes& times) { hub_.step_times_.emplace_back(rank_, times); }
  void note(const wire::TensorStall& stall) { hub_.stalls_.emplace_back(rank_, stall); }
  void note(const Leaving&) { ++hub_.goodbyes_; }

  void open_fence() {
    hub_.published_.merge(hub_.unfenced_);
    for (auto& [key, value] : hub_.unfenced_) hub_.published_[key] = value;  // values put anew
    hub_.unfenced_.clear();
    hub_.arrived_ = 0;
    ++hub_.fences_;
    hub_.changed_.notify_all();
  }

  InprocStoreHub& hub_;
  const int rank_;
};

InprocStoreHub::InprocStoreHub(int size, const JobKey& key)
    : size_(size), key_(key), mailboxes_(static_cast<std::size_t>(size)) {
  for (auto& mailbox : mailboxes_) {
    mailbox.fd.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    HV_CHECK(mailbox.fd.get() >= 0, "an eventfd for each rank of an in-process job");
  }
}

std::unique_ptr<Store> InprocStoreHub::store(int rank) {
  return std::make_unique<InprocStore>(*this, rank);
}

void InprocStoreHub::announce_loss(int rank, const std::string& reason) {
  std::lock_guard lock(mutex_);
  lost_ = "rank " + std::to_string(rank) + " " + reason;
  for (int other = 0; other < size_; ++other) {
    if (other == rank) continue;
    auto& mailbox = mailboxes_[static_cast<std::size_t>(other)];
    mailbox.events.push_back({rank, reason});
    const std::uint64_t one = 1;
    HV_CHECK(::write(mailbox.fd.get(), &one, sizeof one) == sizeof one, "eventfd");
  }
  changed_.notify_all();
}

std::vector<std::pair<int, std::string>> InprocStoreHub::reported_losses() {
  std::lock_guard lock(mutex_);
  return reports_;
}

std::vector<std::pair<int, wire::StepTimes>> InprocStoreHub::reported_step_times() {
  std::lock_guard lock(mutex_);
  return step_times_;
}

std::vector<std::pair<int, wire::TensorStall>> InprocStoreHub::reported_stalls() {
  std::lock_guard lock(mutex_);
  return stalls_;
}

int InprocStoreHub::goodbyes() {
  std::lock_guard lock(mutex_);
  return goodbyes_;
}

}  // namespace hv
