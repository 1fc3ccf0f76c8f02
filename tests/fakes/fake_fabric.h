// A fabric without wires: the messages of a few ranks in queues of one thread, losses on command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/transport/fabric.h"

namespace hv::runtime {

// What the ranks of one fake job share.
struct FakeWires {
  explicit FakeWires(int size) : inboxes(static_cast<std::size_t>(size)) {}
  std::vector<std::deque<std::pair<int, std::string>>> inboxes;
};

class FakeFabric : public Fabric, public Doorbell, public Messenger {
 public:
  FakeFabric(FakeWires& wires, int rank) : wires_(wires) {
    topology_.rank = rank;
    topology_.size = static_cast<int>(wires.inboxes.size());
    topology_.host_of.resize(wires.inboxes.size(), 0);
    for (int other = 0; other < topology_.size; ++other) topology_.local_ranks.push_back(other);
    topology_.leaders = {0};
  }

  const Topology& topology() const override { return topology_; }
  Doorbell& doorbell() override { return *this; }
  Messenger& messenger() override { return *this; }
  void progress() override {}
  void mark_lost(int, const Status& reason) override {
    if (health_.ok()) health_ = reason;
  }
  Status health() const override { return health_; }
  void close(std::chrono::milliseconds) override {}

  std::uint32_t value() const override { return 0; }
  void wait(std::uint32_t, TimePoint) override {}
  void ring() override {}

  Status send(int rank, const void* bytes, std::size_t size) override {
    wires_.inboxes[static_cast<std::size_t>(rank)].emplace_back(
        topology_.rank, std::string(static_cast<const char*>(bytes), size));
    return Status::success();
  }
  bool receive(int* rank, std::string* message) override {
    auto& inbox = wires_.inboxes[static_cast<std::size_t>(topology_.rank)];
    if (inbox.empty()) return false;
    *rank = inbox.front().first;
    *message = std::move(inbox.front().second);
    inbox.pop_front();
    return true;
  }
  void say_goodbye() override {}
  bool has_unsent() const override { return false; }

 private:
  FakeWires& wires_;
  Topology topology_;
  Status health_;
};

}  // namespace hv::runtime
