// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/run_ranks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "bench/ranks/blocking.h"
#include "runtime/backend/native/native_backend.h"

namespace hv::runtime {

int size_of(const JobShape& shape) {
  int size = 0;
  for (const int ranks : shape) size += ranks;
  return size;
}

std::string name_of(const JobShape& shape) {
  std::string name;
  for (const int ranks : shape) name += (name.empty() ? "" : "+") + std::to_string(ranks);
  return name + " ranks";
}

std::vector<RankIdentity> identities_of(const JobShape& shape) {
  static std::atomic<int> jobs{0};
  const std::string job = "test-" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
  std::vector<RankIdentity> identities;
  for (std::size_t host = 0; host < shape.size(); ++host) {
    for (int local = 0; local < shape[host]; ++local) {
      RankIdentity who;
      who.rank = static_cast<int>(identities.size());
      who.size = size_of(shape);
      who.local_rank = local;
      who.local_size = shape[host];
      who.cross_size = 0;
      for (std::size_t other = 0; other < shape.size(); ++other) {
        if (shape[other] <= local) continue;
        if (other < host) ++who.cross_rank;
        ++who.cross_size;
      }
      who.job_id = job;
      identities.push_back(who);
    }
  }
  return identities;
}

Status RankContext::run(CollectiveRequest request) {
  const auto collective = backend.start(std::move(request));
  return run_blocking(*collective, fabric);
}

namespace {

// What the main thread watches.
struct Watch {
  std::mutex mutex;  // guards all
  std::condition_variable changed;
  std::vector<std::string> positions;
  std::vector<std::string> failures;
  int running = 0;
};

FabricConfig config_of(const RunOptions& options) {
  FabricConfig config = options.config;
  config.local =
      options.kind == RankKind::kThreadsOneMapping ? LocalTransport::kInproc : LocalTransport::kShm;
  if (config.addresses.empty()) config.addresses = {"127.0.0.1"};
  return config;
}

void run_rank(const RankIdentity& who, Store& store, const FabricConfig& config,
              const std::string& algorithms, bool closes,
              std::function<void(const std::string&)> at,
              const std::function<void(RankContext&)>& body) {
  at("connecting");
  Status status;
  const auto fabric = connect_fabric(who, store, config, &status);
  if (!fabric) throw std::runtime_error("connect: " + status.message);
  NativeBackend backend(*fabric->data_plane(), {.wishes = parse_algorithms(algorithms)});
  RankContext context{who.rank, who.size, *fabric, backend, store, at};
  at("connected");
  body(context);
  at("closing");
  if (closes) fabric->close(std::chrono::seconds(20));
}

void run_thread(const RankIdentity& who, Store& store, const RunOptions& options, Watch& watch,
                const std::function<void(RankContext&)>& body) {
  const auto index = static_cast<std::size_t>(who.rank);
  const auto at = [&watch, index](const std::string& position) {
    std::lock_guard lock(watch.mutex);
    watch.positions[index] = position;
  };
  std::string failure;
  try {
    run_rank(who, store, config_of(options), options.algorithms, options.closes, at, body);
  } catch (const std::exception& error) {
    failure = "rank " + std::to_string(who.rank) + ": " + error.what();
  }
  std::lock_guard lock(watch.mutex);
  if (!failure.empty()) watch.failures.push_back(failure);
  watch.positions[index] = "finished";
  --watch.running;
  watch.changed.notify_all();
}

}  // namespace

void run_ranks(const JobShape& shape, const RunOptions& options,
               const std::function<void(RankContext&)>& body) {
  const auto identities = identities_of(shape);
  InprocStoreHub hub(size_of(shape));
  std::vector<std::unique_ptr<Store>> stores;
  for (const auto& who : identities) stores.push_back(hub.store(who.rank));
  Watch watch;
  watch.positions.resize(identities.size());
  watch.running = size_of(shape);
  std::vector<std::thread> threads;
  for (const auto& who : identities)
    threads.emplace_back([&, who] {
      run_thread(who, *stores[static_cast<std::size_t>(who.rank)], options, watch, body);
    });
  {
    std::unique_lock lock(watch.mutex);
    if (!watch.changed.wait_for(lock, options.deadline, [&] { return watch.running == 0; })) {
      for (std::size_t r = 0; r < watch.positions.size(); ++r)
        std::fprintf(stderr, "deadline: rank %zu of %s is at: %s\n", r, name_of(shape).c_str(),
                     watch.positions[r].c_str());
      for (const std::string& failure : watch.failures)
        std::fprintf(stderr, "deadline: failed before: %s\n", failure.c_str());
      std::abort();
    }
  }
  for (auto& thread : threads) thread.join();
  if (!watch.failures.empty()) throw std::runtime_error(watch.failures.front());
}

struct ForkedJob::Positions {
  static constexpr std::size_t kText = 200;
  struct Line {
    std::atomic<std::uint32_t> version;
    char text[kText];
  } of[64];
};

ForkedJob::ForkedJob(const JobShape& shape, FabricConfig config)
    : shape_(shape),
      config_(std::move(config)),
      hub_(size_of(shape)),
      identities_(identities_of(shape)) {
  if (config_.addresses.empty()) config_.addresses = {"127.0.0.1"};
  positions_ = static_cast<Positions*>(::mmap(nullptr, sizeof(Positions), PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

void ForkedJob::start(const std::function<int(RankContext&)>& body) {
  std::fflush(nullptr);
  for (const auto& who : identities_) {
    const int child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child > 0) {
      children_.push_back(child);
      continue;
    }
    auto& line = positions_->of[who.rank];
    const auto at = [&line](const std::string& position) {
      line.version.fetch_add(1);
      std::strncpy(line.text, position.c_str(), Positions::kText - 1);
      line.version.fetch_add(1);
    };
    int code = 120;
    try {
      const auto store = hub_.store(who.rank);
      run_rank(who, *store, config_, {}, true, at,
               [&](RankContext& context) { code = body(context); });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", who.rank, error.what());
      code = 121;
    }
    ::_exit(code);
  }
}

void ForkedJob::kill_rank(int rank, bool announce) {
  ::kill(children_[static_cast<std::size_t>(rank)], SIGKILL);
  if (announce) hub_.announce_loss(rank, "ended by signal 9 (Killed)");
}

void ForkedJob::signal_rank(int rank, int signal) {
  ::kill(children_[static_cast<std::size_t>(rank)], signal);
}

void ForkedJob::await_position(int rank, const std::string& position) {
  const auto& line = positions_->of[rank];
  const TimePoint deadline = now() + std::chrono::seconds(30);
  while (now() < deadline) {
    const std::uint32_t version = line.version.load();
    if (version % 2 == 0 && position == line.text && line.version.load() == version) return;
    ::sched_yield();
  }
  throw std::runtime_error("rank " + std::to_string(rank) + " never came to '" + position +
                           "' but is at '" + line.text + "'");
}

std::vector<int> ForkedJob::wait(std::chrono::seconds limit) {
  std::vector<int> results;
  const TimePoint deadline = now() + limit;
  for (std::size_t r = 0; r < children_.size(); ++r) {
    int result = 0;
    while (::waitpid(children_[r], &result, WNOHANG) == 0) {
      if (now() >= deadline) {
        for (std::size_t other = 0; other < children_.size(); ++other)
          std::fprintf(stderr, "deadline: rank %zu of %s is at: %s\n", other,
                       name_of(shape_).c_str(), positions_->of[other].text);
        for (const int child : children_) ::kill(child, SIGKILL);
        throw std::runtime_error("the ranks did not end in time");
      }
      ::sched_yield();
    }
    results.push_back(result);
  }
  children_.clear();
  return results;
}

ForkedJob::~ForkedJob() {
  for (const int child : children_) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::munmap(positions_, sizeof(Positions));
}

}  // namespace hv::runtime
