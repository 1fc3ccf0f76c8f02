// Tests of where the hosts come from.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/allocate.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/net/interfaces.h"
#include "tests/unit/allocation/refusal.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;
using hv::tests::message_of;

namespace {

// A folder of its own as working directory, gone at the end.
class InNewFolder {
 public:
  InNewFolder() {
    REQUIRE(::getcwd(before_, sizeof before_));
    REQUIRE(::chdir(folder_.path().c_str()) == 0);
  }
  ~InNewFolder() { (void)!::chdir(before_); }

 private:
  hv::tests::TemporaryFolder folder_;
  char before_[4096];
};

}  // namespace

namespace {

HostList find(const HostWishes& wishes, const std::vector<std::string>& variables = {}) {
  const AddressLookup own = [](const std::vector<std::string>& names) {
    std::vector<std::vector<std::string>> addresses;
    for (const std::string& name : names)
      addresses.push_back(hv::is_own_name(name) ? std::vector<std::string>{"here"}
                                                : std::vector<std::string>{});
    return addresses;
  };
  return find_hosts(wishes, hv::Environment::from_entries(variables), own).list;
}

}  // namespace

TEST_CASE("nobody named means this machine") { CHECK(find({}).this_machine); }

TEST_CASE("-H with a word that is a readable file reads it, a name stays a name") {
  const InNewFolder folder;
  std::ofstream("hosts") << "x slots=3\n";
  CHECK(find({"hosts"}).entries[0].name == "x");
  CHECK(find({"other"}).entries[0].name == "other");
  CHECK(find({"hosts:2"}).entries[0].name == "hosts");  // a colon: no file is meant
}

TEST_CASE("a hostfile that cannot be read is an error naming it and the reason") {
  const InNewFolder folder;
  CHECK(message_of([] {
          find({"", "missing"});
        }) == "read hostfile missing: No such file or directory");
  CHECK(message_of([] { find({"", "."}); }).find("read hostfile .: ") == 0);
}

TEST_CASE("-H together with a hostfile chooses from it") {
  const InNewFolder folder;
  std::ofstream("hosts") << "a slots=3\nb slots=2\n";
  const HostList list = find({"b", "hosts"});
  REQUIRE(list.entries.size() == 1);
  CHECK(list.entries[0].slots == 2);
  CHECK_THROWS_AS(find({"c", "hosts"}), hv::Error);
}

TEST_CASE("--include and --exclude without hosts choose among this machine's GPUs") {
  HostWishes wishes;
  wishes.include = "localhost:0,2";
  const HostList some = find(wishes);
  REQUIRE(some.entries.size() == 1);
  CHECK_FALSE(some.this_machine);
  CHECK(some.entries[0].gpus == std::vector<std::string>{"0", "2"});
  CHECK(some.entries[0].slots == 2);
  wishes.include = "localhost";
  CHECK(find(wishes).this_machine);
  HostWishes without;
  without.exclude = "localhost:1";
  CHECK(find(without).entries.at(0).without_gpus == std::vector<int>{1});
  wishes.include = hv::own_hostname() + ":1";
  CHECK(find(wishes).entries.at(0).gpus == std::vector<std::string>{"1"});
  wishes.include = "no-such-host:0";
  CHECK(message_of([&] { find(wishes); }).find("'no-such-host' is none of the hosts") !=
        std::string::npos);
}

TEST_CASE("this machine is chosen among hosts by any of its names") {
  HostWishes wishes{"a:1," + hv::own_hostname() + ":4"};
  wishes.include = "localhost:0,2";
  CHECK(find(wishes).entries.at(0).name == hv::own_hostname());
  wishes = {"127.0.0.1", ""};
  const InNewFolder folder;
  std::ofstream("hosts") << "a slots=3\n" << hv::own_hostname() << " slots=2\n";
  wishes.hostfile = "hosts";
  CHECK(find(wishes).entries.at(0).slots == 2);
}

TEST_CASE("who is named on the command line counts more than a scheduler's hosts") {
  const std::vector<std::string> slurm{"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]"};
  CHECK(find({}, slurm).entries.size() == 2);
  CHECK(find({"a"}, slurm).entries[0].name == "a");
  const hv::Environment environment = hv::Environment::from_entries(slurm);
  CHECK(find_hosts({}, environment).source == "Slurm");
}

TEST_CASE("a list of hosts says which scheduler has named them, also where options choose") {
  const std::vector<std::string> slurm{"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]",
                                       "SLURM_GPUS_ON_NODE=4"};
  CHECK(find({}, slurm).scheduler == "Slurm");
  CHECK(find({}, slurm).scheduler_gpus.of_each_host == 4);
  HostWishes wishes;
  wishes.include = "n1";
  CHECK(find(wishes, slurm).scheduler == "Slurm");
  CHECK(find(wishes, slurm).scheduler_gpus.of_each_host == 4);
  // The GPUs of all nodes may be on the others.
  const std::vector<std::string> in_all{"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]",
                                        "SLURM_GPUS=6"};
  CHECK(find({}, in_all).scheduler_gpus.in_all == 6);
  CHECK(find(wishes, in_all).scheduler_gpus.in_all == 0);
  CHECK(find({"n1"}, slurm).scheduler.empty());
  CHECK(find({"n1"}, slurm).scheduler_gpus.of_each_host == 0);
}

TEST_CASE("a scheduler's file is in its form also where the user names it") {
  const InNewFolder folder;
  std::ofstream("nodes") << "a\nb\n";
  const std::vector<std::string> pbs{"PBS_JOBID=1", "PBS_NODEFILE=nodes"};
  CHECK(find({"", "nodes"}, pbs).entries[0].slots == 1);
  CHECK_FALSE(find({"", "nodes"}).entries[0].slots.has_value());
  CHECK(find({"", "nodes", "pbs"}).entries[0].slots == 1);
  CHECK_THROWS_AS(find({"", "nodes", "sge"}), hv::Error);
  std::filesystem::create_symlink("nodes", "link");
  const std::string whole = std::filesystem::current_path() / "nodes";
  for (const std::string name : {"./nodes", "link", whole.c_str()}) {
    CAPTURE(name);
    CHECK(find({"", name}, pbs).entries[0].slots == 1);
    CHECK(find({"", name}, {"LSB_DJOB_HOSTFILE=nodes"}).entries[0].slots == 1);
  }
  std::filesystem::copy_file("nodes", "copy");
  CHECK_FALSE(find({"", "copy"}, pbs).entries[0].slots.has_value());
}

TEST_CASE("a stated format is looked at where no hostfile is read, too, and refused there") {
  CHECK(message_of([] {
          find({"a:2", "", "sgee"});
        }) == "--hostfile-format 'sgee' is not understood");
  const std::string none = "--hostfile-format sge is the form of a hostfile, and none is read";
  CHECK(message_of([] { find({"a:2", "", "sge"}); }) == none);
  CHECK(message_of([] { find({"", "", "sge"}); }) == none);
  CHECK(message_of([] {
          find({"", "", "sge"}, {"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1"});
        }) == none);
}

TEST_CASE("a scheduler's file that cannot be read names the variable") {
  CHECK(message_of([] {
          find({}, {"PBS_JOBID=1", "PBS_NODEFILE=/no/such"});
        }) == "read $PBS_NODEFILE /no/such: No such file or directory");
}

TEST_CASE("--include and --exclude choose among named hosts, one of them at a time") {
  CHECK(find({"a:2,b:2", "", "", "b"}).entries.size() == 1);
  CHECK(find({"a:2,b:2", "", "", "", "b"}).entries[0].name == "a");
  CHECK_THROWS_AS(find({"a:2,b:2", "", "", "a", "b"}), hv::Error);
  CHECK_THROWS_AS(find({"", "", "", "a"}), hv::Error);
}

TEST_CASE("a host with no slot takes no part, and one at least has some") {
  const InNewFolder folder;
  std::ofstream("hosts") << "a slots=0\nb slots=2\nc\nd slots=0\nd slots=1\n";
  const auto names = [](const HostList& list) {
    std::string text;
    for (const HostEntry& entry : list.entries) text += entry.name;
    return text;
  };
  CHECK(names(find({"", "hosts"})) == "bcd");
  CHECK(names(find({"a:0,b,c:0"})) == "b");
  CHECK(names(find({"a,b", "hosts"})) == "b");
  CHECK(message_of([] {
          find({"a:1", "hosts"});
        }).find("'a' has 0 slots in hosts:1, and 1 are") != std::string::npos);
  CHECK(message_of([] {
          find({"a", "hosts"});
        }) == "no host has a slot: host a has slots=0 in hosts:1");
  CHECK(message_of([] { find({"x:0,y:0"}); }).find("no host has a slot: host x") == 0);
}

TEST_CASE("a word that is named like a file is meant as one, though it is not there") {
  const InNewFolder folder;
  for (const std::string word : {"hosts.txt", "./hosts", "lab/hosts"}) {
    CAPTURE(word);
    CHECK(message_of([&] { find({word}); }) ==
          "read hostfile " + word + ": No such file or directory");
  }
  CHECK(find({"node1.lab.org"}).entries[0].name == "node1.lab.org");
}

TEST_CASE("a folder of a host's name changes nothing") {
  const InNewFolder folder;
  std::filesystem::create_directory("node1");
  CHECK(find({"node1"}).entries[0].name == "node1");
}

TEST_CASE("a hostfile that was written on Windows is read") {
  const InNewFolder folder;
  std::ofstream("hosts") << "\xef\xbb\xbf"
                         << "a slots=2\r\nb\r\n";
  const HostList list = find({"", "hosts"});
  REQUIRE(list.entries.size() == 2);
  CHECK(list.entries[0].name == "a");
  CHECK(list.entries[1].name == "b");
}
