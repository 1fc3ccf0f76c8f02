// What the members of a process set see of the fabric.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/set_plane.h"

#include <doctest/doctest.h>

#include <map>

#include "runtime/transport/inproc/inproc_source.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// Three hosts: ranks 0-2, 3-5 and 6-7.
Topology job_of(int rank) {
  Topology job;
  job.rank = rank;
  job.size = 8;
  job.host_of = {0, 0, 0, 1, 1, 1, 2, 2};
  job.leaders = {0, 3, 6};
  for (int other = 0; other < job.size; ++other)
    if (job.host_of[static_cast<std::size_t>(other)] == job.host_of[static_cast<std::size_t>(rank)])
      job.local_ranks.push_back(other);
  return job;
}

// Notes which channels were asked for.
class NotingPlane : public DataPlane {
 public:
  explicit NotingPlane(int rank) : topology_(job_of(rank)) {}
  SlotRings& host() override { return rings_; }
  const Topology& topology() const override { return topology_; }
  Channel& channel(int rank, int lane) override {
    ++asked[{rank, lane}];
    return nothing_;
  }
  Status health() const override { return {}; }
  bool is_healthy() const override { return true; }
  std::map<std::pair<int, int>, int> asked;
  int shrunk() const { return nothing_.shrunk; }

 private:
  struct Nothing : Channel {
    std::size_t writable() const override { return 0; }
    void write(const void*, std::size_t) override {}
    std::span<const std::byte> readable() const override { return {}; }
    void consume(std::size_t) override {}
    void shrink() override { ++shrunk; }
    int shrunk = 0;
  };
  const Topology topology_;
  Nothing nothing_;
  const HostGeometry geometry_{3, 4096};
  HostMemory memory_{inproc_memory("set plane", geometry_.total_bytes()), geometry_, 1};
  SlotRings rings_{memory_, {{0, 0}, {1, 0}, {2, 0}}, 1};
};

}  // namespace

TEST_CASE("members are numbered by place, hosts by their first member") {
  const Topology set = topology_of_set(job_of(4), {1, 4, 5, 7});
  CHECK(set.rank == 1);
  CHECK(set.size == 4);
  CHECK(set.host_of == std::vector<int>{0, 1, 1, 2});
  CHECK(set.local_ranks == std::vector<int>{1, 2});
  CHECK(set.leaders == std::vector<int>{0, 1, 3});
  const Topology later = topology_of_set(job_of(7), {4, 7});
  CHECK(later.host_of == std::vector<int>{0, 1});
  CHECK(later.local_ranks == std::vector<int>{1});
  CHECK(later.leaders == std::vector<int>{0, 1});
}

TEST_CASE("a set's plane opens its own block of lanes to its members on other hosts, no more") {
  NotingPlane job(4);
  SetPlane plane(job, {{1, 4, 5, 7}, {1, 2, 3, 1}, 5});
  CHECK(job.asked.size() == 2 * kLanesPerSet);
  for (const int rank : {1, 7})
    for (int lane = 1; lane <= kLanesPerSet; ++lane)
      CHECK(job.asked.count({rank, 5 * kLanesPerSet + lane}) == 1);
  job.asked.clear();
  plane.channel(3, data_lane(1, 0));
  CHECK(job.asked.count({7, 5 * kLanesPerSet + data_lane(1, 0)}) == 1);
}

TEST_CASE("a set that is cleared gives back the memory of all its lanes") {
  NotingPlane job(4);
  SetPlane plane(job, {{1, 4, 5, 7}, {1, 2, 3, 1}, 5});
  CHECK(job.shrunk() == 0);
  clear_set(plane);
  CHECK(job.shrunk() == 2 * kLanesPerSet);
}

TEST_CASE("a set's rings are the cells of its members on this host") {
  NotingPlane job(4);
  SetPlane plane(job, {{1, 4, 5, 7}, {1, 2, 3, 1}, 5});
  CHECK(plane.host().ranks() == 2);
  CHECK(plane.host().index() == 0);
  CHECK(plane.host().slot(0, 0, 0) == job.host().memory().slots(1, 2));
  CHECK(plane.host().slot(1, 0, 0) == job.host().memory().slots(2, 3));
}
