// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/login_node.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;

namespace {

void put(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
}

bool is_by_default(const std::vector<std::string>& variables, const HostList& hosts) {
  return is_machine_by_default(hosts, Environment::from_entries(variables));
}

}  // namespace

TEST_CASE("ranks are on this machine by default only where nobody says so, and outside of jobs") {
  HostList here, named;
  here.this_machine = true;
  named.entries.emplace_back().name = "localhost";
  CHECK(is_by_default({"PATH=/bin"}, here));
  CHECK_FALSE(is_by_default({}, named));
  CHECK_FALSE(is_by_default({"SLURM_JOB_ID=7"}, here));
  CHECK_FALSE(is_by_default({"HVRUN_RANK=0"}, here));
}

TEST_CASE("a login node has Slurm's commands and configuration, and no slurmd") {
  CHECK(warnings_of_login_node({true, true, false}).size() == 1);
  CHECK(warnings_of_login_node({true, true, true}).empty());
  CHECK(warnings_of_login_node({true, false, false}).empty());
  CHECK(warnings_of_login_node({false, true, false}).empty());
}

TEST_CASE("Slurm is found by its commands on PATH and by its configuration") {
  const tests::TemporaryFolder folder;
  const auto find = [&](const std::vector<std::string>& more) {
    std::vector<std::string> variables{"PATH=" + folder / "slurm/bin"};
    variables.insert(variables.end(), more.begin(), more.end());
    return find_slurm(Environment::from_entries(variables));
  };
  CHECK_FALSE(find({}).has_commands);
  put(folder / "slurm/bin/srun");
  CHECK_FALSE(find({}).has_commands);
  put(folder / "slurm/bin/sbatch");
  CHECK(find({}).has_commands);
  CHECK_FALSE(find({"SLURM_CONF=" + folder / "none"}).has_configuration);
  put(folder / "slurm/etc/slurm.conf");
  CHECK(find({}).has_configuration);
  CHECK(find({"SLURM_CONF=" + folder / "slurm/etc/slurm.conf"}).has_configuration);
}
