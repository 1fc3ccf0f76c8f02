// Other jobs' ranks on this job's cores, from a /proc of a test's own.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/bound_cores.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;
using namespace std::string_literals;

namespace {

struct Proc {
  tests::TemporaryFolder folder;

  void add(const std::string& pid, const std::string& cores, const std::string& environment) {
    const std::string directory = folder.folder(pid);
    std::ofstream(directory + "/status") << "Name:\tx\nCpus_allowed_list:\t" << cores << "\n";
    std::ofstream(directory + "/environ") << environment;
  }
  std::string shared(const std::vector<std::uint32_t>& cores) const {
    return describe_shared_cores("mine", mask_of(cores), mask_of({0, 1, 2, 3, 4, 5, 6, 7}),
                                 folder.path());
  }
};

const std::string kOther = "A=1\0HVRUN_JOB_ID=other\0HVRUN_RANK=0\0"s;

}  // namespace

TEST_CASE("ranks of another job that are bound to the same cores are named with these") {
  Proc proc;
  proc.add("12", "0-2", kOther);
  CHECK(proc.shared({1, 2, 3}) ==
        "ranks of another hvrun job are bound to cores 1-2, too (such as pid 12)");
  proc.add("13", "5", kOther);
  CHECK(proc.shared({5}) == "ranks of another hvrun job are bound to core 5, too (such as pid 13)");
  CHECK(proc.shared({3, 4}).empty());
}

TEST_CASE("own ranks, unbound ranks and other programs share no cores with a job") {
  Proc proc;
  proc.add("12", "0-2", "HVRUN_JOB_ID=mine\0HVRUN_RANK=0\0"s);
  proc.add("13", "0-7", kOther);
  proc.add("14", "0-127", kOther);
  proc.add("15", "0-2", "HOME=/\0"s);
  proc.add("16", "0-2", "X=HVRUN_JOB_ID=other HVRUN_RANK=1\0"s);
  proc.add("self", "0-2", kOther);
  CHECK(proc.shared({0, 1, 2}).empty());
}
