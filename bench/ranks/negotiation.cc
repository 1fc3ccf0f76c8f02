// The engines of all ranks of a large job in one process and one thread, over messages in memory:
// what a step costs at each level of the control tree. SPDX-License-Identifier: Apache-2.0
//
//   bench_negotiation RANKS RANKS_PER_HOST TENSORS
//
// The engine and its step are the ones of production; nothing is reduced, so what is counted is
// the negotiation alone. One JSON object a line, for each kind of step (fresh: never seen before;
// known: by number; bucket: by bucket; late: by bucket, and one rank of every 512 comes a second
// after the others, each a little later than the one before) and level (root, leaders by their
// distance from it, ranks). The last line tells whom the root took for the latest.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/negotiation/control_tree.h"
#include "runtime/engine/observation.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kBucketStep = 6;  // the first that is known by bucket (bucket_planner.h)

struct Cost {
  std::size_t nodes = 0;
  std::size_t messages = 0;    // sent
  std::size_t bytes_up = 0;    // sent to the parent
  std::size_t bytes_down = 0;  // sent to all children
  std::size_t most_bytes = 0;  // sent and received by one node
  double seconds = 0;
};

// Moves nothing: a collective is over at once.
class NoBackend : public Backend {
 public:
  const char* name() const override { return "none"; }
  bool supports(const CollectiveRequest&) const override { return true; }
  std::unique_ptr<Collective> start(CollectiveRequest) override { return std::make_unique<Over>(); }

 private:
  struct Over : Collective {
    Progress advance() override { return Progress::kDone; }
    Status status() const override { return {}; }
  };
};

struct Traffic {
  std::size_t messages = 0, up = 0, down = 0, received = 0;
};

// What all ranks share.
struct Wires {
  Topology topology;  // .rank is that of the engine that is being made
  std::vector<int> parents;
  std::vector<std::deque<std::pair<int, std::string>>> inboxes;
  std::vector<Traffic> traffic;
};

class SimulatedFabric : public Fabric, public Doorbell, public Messenger {
 public:
  SimulatedFabric(Wires& wires, int rank) : wires_(wires), rank_(rank) {}

  const Topology& topology() const override { return wires_.topology; }
  Doorbell& doorbell() override { return *this; }
  Messenger& messenger() override { return *this; }
  void progress() override {}
  void mark_lost(int, const Status& reason) override {
    std::fprintf(stderr, "rank %d: %s\n", rank_, reason.message.c_str());
    std::exit(1);
  }
  Status health() const override { return {}; }
  void close(std::chrono::milliseconds) override {}
  std::uint32_t value() const override { return 0; }
  void wait(std::uint32_t, TimePoint) override {}
  void ring() override {}

  Status send(int to, const void* bytes, std::size_t size) override {
    Traffic& own = at(wires_.traffic, rank_);
    ++own.messages;
    (to == at(wires_.parents, rank_) ? own.up : own.down) += size;
    at(wires_.traffic, to).received += size;
    at(wires_.inboxes, to).emplace_back(rank_, std::string(static_cast<const char*>(bytes), size));
    return {};
  }
  void say_goodbye() override {}
  bool has_unsent() const override { return false; }
  bool receive(int* from, std::string* message) override {
    auto& inbox = at(wires_.inboxes, rank_);
    if (inbox.empty()) return false;
    std::tie(*from, *message) = std::move(inbox.front());
    inbox.pop_front();
    return true;
  }

 private:
  template <class T>
  static T& at(std::vector<T>& values, int rank) {
    return values[static_cast<std::size_t>(rank)];
  }

  Wires& wires_;
  const int rank_;
};

class Simulation {
 public:
  Simulation(int ranks, int ranks_per_host, int tensors) : tensors_(tensors) {
    Topology& topology = wires_.topology;
    topology.size = ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank % ranks_per_host == 0) topology.leaders.push_back(rank);
      topology.host_of.push_back(rank / ranks_per_host);
    }
    wires_.inboxes.resize(topology.host_of.size());
    wires_.traffic.resize(topology.host_of.size());
    seconds_.resize(topology.host_of.size());
    EngineConfig config;
    config.negotiation.observation = observation_;
    for (int rank = 0; rank < ranks; ++rank) {
      topology.rank = rank;
      wires_.parents.push_back(make_control_tree(topology).parent);
      fabrics_.push_back(std::make_unique<SimulatedFabric>(wires_, rank));
      engines_.push_back(std::make_unique<Engine>(config, *fabrics_.back(), SetParts{{&backend_}}));
      config.negotiation.observation = nullptr;  // the root's was for the first
    }
    for (int rank = 0; rank < ranks; ++rank) levels_.push_back(level_of(rank));
  }

  // Every rank has all tensors ready, some of them perhaps late; until all are reduced.
  void step(bool some_are_late) {
    wires_.traffic.assign(wires_.traffic.size(), {});
    seconds_.assign(seconds_.size(), 0);
    std::vector<OperationPtr> operations;
    const auto is_late = [&](std::size_t rank) { return some_are_late && rank % 512 == 511; };
    for (std::size_t rank = 0; rank < engines_.size(); ++rank)
      if (!is_late(rank)) submit(rank, &operations);
    exchange();
    time_ += std::chrono::seconds(1);
    for (std::size_t rank = 0; rank < engines_.size(); ++rank) {
      if (!is_late(rank)) continue;
      time_ += std::chrono::milliseconds(1);
      submit(rank, &operations);
      exchange();
    }
    for (const OperationPtr& operation : operations) {
      if (operation->is_done && operation->outcome.ok()) continue;
      std::fprintf(stderr, "'%s' is not done: %s\n", operation->name.c_str(),
                   operation->outcome.message.c_str());
      std::exit(1);
    }
  }

  void print(const char* kind) const {
    std::map<std::string, Cost> costs;
    for (std::size_t rank = 0; rank < engines_.size(); ++rank) {
      Cost& cost = costs[levels_[rank]];
      const Traffic& traffic = wires_.traffic[rank];
      ++cost.nodes;
      cost.messages += traffic.messages;
      cost.bytes_up += traffic.up;
      cost.bytes_down += traffic.down;
      cost.most_bytes = std::max(cost.most_bytes, traffic.up + traffic.down + traffic.received);
      cost.seconds += seconds_[rank];
    }
    for (const auto& [level, cost] : costs) {
      const auto nodes = static_cast<double>(cost.nodes);
      std::printf(
          "{\"ranks\": %d, \"tensors\": %d, \"step\": \"%s\", \"level\": \"%s\", \"nodes\": %zu, "
          "\"messages\": %.2f, \"bytes_up\": %.1f, \"bytes_down\": %.1f, \"most_bytes\": %zu, "
          "\"us\": %.2f}\n",
          wires_.topology.size, tensors_, kind, level.c_str(), cost.nodes,
          static_cast<double>(cost.messages) / nodes, static_cast<double>(cost.bytes_up) / nodes,
          static_cast<double>(cost.bytes_down) / nodes, cost.most_bytes,
          1e6 * cost.seconds / nodes);
    }
  }

  void print_latest() const {
    const Counters& root = observation_->counters;
    std::printf("{\"ranks\": %d, \"worst_rank\": %d, \"worst_rank_seconds\": %.3f}\n",
                wires_.topology.size, root.worst_rank.load(),
                1e-9 * static_cast<double>(root.worst_rank_nanoseconds.value()));
  }

 private:
  std::string level_of(int rank) const {
    const Topology& topology = wires_.topology;
    const int host = topology.host_of[static_cast<std::size_t>(rank)];
    if (topology.leaders[static_cast<std::size_t>(host)] != rank) return "rank";
    int depth = 0;
    for (int at = rank; at > 0; at = wires_.parents[static_cast<std::size_t>(at)]) ++depth;
    return depth == 0 ? "root" : "leader " + std::to_string(depth);
  }

  static OperationPtr gradient(int number) {
    static std::byte memory[4096];
    auto operation = std::make_shared<Operation>();
    operation->name = "gradient of layer " + std::to_string(number);
    operation->description.kind = CollectiveKind::kAllreduce;
    operation->description.type = ElementType::kFloat32;
    operation->description.shape = {1024};
    operation->input = operation->output = memory;
    return operation;
  }

  void submit(std::size_t rank, std::vector<OperationPtr>* operations) {
    for (int i = 0; i < tensors_; ++i) {
      operations->push_back(gradient(i));
      if (!engines_[rank]->enqueue(operations->back()).ok()) std::abort();
    }
    advance(rank);
  }

  // Until nobody has anything to say.
  void exchange() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = engines_.size(); rank-- > 0;) {
        if (wires_.inboxes[rank].empty()) continue;
        any = true;
        advance(rank);
      }
    }
  }

  void advance(std::size_t rank) {
    const TimePoint begun = now();
    // Their time passes between steps, and where somebody is late: bytes are the same in every run.
    while (engines_[rank]->step(time_).has_progressed) {
    }
    seconds_[rank] += seconds_since(begun);
  }

  const int tensors_;
  TimePoint time_ = TimePoint{} + std::chrono::hours(1);
  Wires wires_;
  NoBackend backend_;
  std::vector<std::unique_ptr<SimulatedFabric>> fabrics_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::string> levels_;
  std::vector<double> seconds_;
  const ObservationPtr observation_ = std::make_shared<Observation>();  // the root's
};

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc == 4 ? std::atoi(argv[1]) : 0;
  const int ranks_per_host = argc == 4 ? std::atoi(argv[2]) : 0;
  const int tensors = argc == 4 ? std::atoi(argv[3]) : 0;
  if (ranks < 1 || ranks_per_host < 1 || tensors < 2) {
    std::fprintf(stderr, "usage: bench_negotiation RANKS RANKS_PER_HOST TENSORS\n");
    return 2;
  }
  Simulation simulation(ranks, ranks_per_host, tensors);
  for (int step = 1; step <= kBucketStep; ++step) {
    simulation.step(false);
    if (step == 1) simulation.print("fresh");
    if (step == 2) simulation.print("known");
    if (step == kBucketStep) simulation.print("bucket");
  }
  simulation.step(true);
  simulation.print("late");
  simulation.print_latest();
}
