// What ranks know of the cores of their host.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sched.h>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

// This thread, and those that it starts, may use only that many of its cores.
class Confined {
 public:
  explicit Confined(int cores) {
    CPU_ZERO(&before_);
    require(::sched_getaffinity(0, sizeof before_, &before_) == 0, "the cores of this thread");
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int core = 0; CPU_COUNT(&some) < cores && core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &some);
    require(::sched_setaffinity(0, sizeof some, &some) == 0, "confine this thread");
  }
  ~Confined() { (void)::sched_setaffinity(0, sizeof before_, &before_); }
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;
  int cores_before() const { return CPU_COUNT(&before_); }

 private:
  cpu_set_t before_;
};

void expect_cores(int cores) {
  run_ranks({2, 1}, {}, [&](RankContext& context) {
    require(context.fabric.topology().usable_cores == cores,
            std::to_string(context.fabric.topology().usable_cores) + " cores of " +
                std::to_string(cores));
  });
}

}  // namespace

TEST_CASE("ranks count the cores that all of their host's ranks may use together") {
  int all = 0;
  {
    const Confined one(1);
    all = one.cores_before();
    expect_cores(1);
  }
  expect_cores(all);
}

}  // namespace hv::runtime
