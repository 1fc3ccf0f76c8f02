// What hosts tell of themselves, and what is made of it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "launcher/check/told.h"
#include "tests/unit/check/healthy.h"

namespace hv::launcher {
namespace {

using tests::all_verdicts;
using tests::finding_of;
using tests::healthy_input;
using tests::kGiB;
using tests::kMiB;
using Hosts = std::vector<std::string>;

wire::CheckReply& told(CheckInput& input, std::size_t host) { return *input.hosts[host].told; }

TEST_CASE("folders: a missing one keeps the job from starting, with the command that makes it") {
  CheckInput input = healthy_input(3);
  told(input, 1).folders[0].problem =
      "change to the working directory /home/ada/run: No such file or directory";
  const Finding finding = finding_of(input, "folder-missing");
  CHECK(finding.hosts == Hosts{"n2"});
  CHECK(finding.fact ==
        "n2: change to the working directory /home/ada/run: No such file or directory");
  CHECK(finding.fix == "ssh n2 mkdir -p /home/ada/run; or name another one with --wdir");
  CHECK(finding.severity == Severity::kCannotStart);
  told(input, 1).folders[0].problem = "change to the working directory /x: Permission denied";
  CHECK(all_verdicts(input) == "folder-forbidden");
  input.has_program = false;  // it would be whatever directory hvrun check was called in
  CHECK(all_verdicts(input) == "");
  input.spec.names_working_directory = true;
  CHECK(all_verdicts(input) == "folder-forbidden");
}

TEST_CASE("a fix is told with the other hosts that need it") {
  CheckInput input = healthy_input(4);
  for (const std::size_t host : {1, 2, 3}) told(input, host).folders[0].problem = "no";
  CHECK(finding_of(input, "folder-missing").fix ==
        "ssh n2 mkdir -p /home/ada/run; or name another one with --wdir; likewise for n[3-4]");
  CheckInput refused = healthy_input(3);
  const auto refuse = [&refused](std::size_t host, const std::string& hint) {
    refused.hosts[host].failure = Error(ErrorKind::kStart, "connect: Connection refused", hint);
  };
  refuse(1, "see that sshd runs on n2");
  refuse(2, "see that sshd runs on n3");
  CHECK(finding_of(refused, "ssh-refused").fix == "see that sshd runs on n2; likewise for n3");
  refuse(1, "ask in room n2");
  refuse(2, "ask in room n2");
  CHECK(finding_of(refused, "ssh-refused").fix == "ask in room n2");
}

TEST_CASE("names: a host whose own name is a loopback address, or none, is told with the line") {
  CheckInput input = healthy_input(3);
  for (CheckedHost& host : input.hosts) host.told->names = {{host.name, {"10.0.0.1"}, ""}};
  CHECK(all_verdicts(input) == "");
  told(input, 1).names = {{"n2", {"127.0.1.1", "::1"}, "line 2: 127.0.1.1 n2"}};
  const Finding loopback = finding_of(input, "hostname-loopback");
  CHECK(loopback.hosts == Hosts{"n2"});
  CHECK(loopback.fact == "n2: /etc/hosts, line 2: 127.0.1.1 n2");
  told(input, 1).names[0].addresses.emplace_back("10.0.0.2");
  CHECK(all_verdicts(input) == "");
  told(input, 1).names = {{"n2", {}, ""}, {"n1", {"127.0.0.1"}, ""}};
  CHECK(all_verdicts(input) == "hostname-unknown");
  CHECK(finding_of(input, "hostname-unknown").fact == "n2: no address for 'n2'");
  CheckInput alone = healthy_input(1);
  told(alone, 0).names = {{"n1", {}, ""}};
  CHECK(all_verdicts(alone) == "");
}

TEST_CASE("a fix for this machine logs in to none") {
  CheckInput input = healthy_input(1);
  input.hosts[0].name = "localhost";
  told(input, 0).folders[0].problem = "no";
  CHECK(finding_of(input, "folder-missing").fix ==
        "mkdir -p /home/ada/run; or name another one with --wdir");
}

TEST_CASE("a fix logs in as hvrun does") {
  CheckInput input = healthy_input(2);
  input.spec.access.remote_shell = "oarsh -x";
  told(input, 1).folders[0].problem = "No such file or directory";
  CHECK(finding_of(input, "folder-missing").fix ==
        "oarsh -x n2 mkdir -p /home/ada/run; or name another one with --wdir");
}

TEST_CASE("folders: little room is told where it is, and once for programs in one directory") {
  CheckInput input = healthy_input(2);
  input.spec.programs.push_back(input.spec.programs[0]);
  for (std::size_t host : {0, 1}) {
    told(input, host)
        .folders.insert(told(input, host).folders.begin(), told(input, host).folders[0]);
    told(input, host).programs.push_back(told(input, host).programs[0]);
  }
  CHECK(all_verdicts(input) == "");
  told(input, 1).folders[0].free_bytes = told(input, 1).folders[1].free_bytes = 99 * kMiB;
  CHECK(finding_of(input, "folder-full").fact ==
        "n2: 99 MiB free in the working directory /home/ada/run");
  told(input, 0).folders[2].free_files = 999;
  CHECK(finding_of(input, "temporary-full").fact ==
        "n1: 999 inodes free in the temporary directory /tmp");
  told(input, 0).folders[2].problem = "write to the temporary directory /tmp: Permission denied";
  CHECK(all_verdicts(input) == "folder-full temporary-unusable");
}

TEST_CASE("program: hosts with the same trouble are one finding, in the agent's words") {
  CheckInput input = healthy_input(3);
  for (std::size_t host : {0, 2}) {
    told(input, host).programs[0] = {};
    told(input, host).programs[0].problem = "find the program ./train in /home/ada/run: none";
    told(input, host).programs[0].advice = "chmod +x ./train";
  }
  const Finding finding = finding_of(input, "program-missing");
  CHECK(finding.fact == "n[1,3]: find the program ./train in /home/ada/run: none");
  CHECK(finding.fix == "chmod +x ./train");
  told(input, 0).programs[0].path = "/home/ada/run/train";
  told(input, 0).programs[0].problem = "execute /home/ada/run/train: its first line ...";
  CHECK(finding_of(input, "program-not-executable").hosts == Hosts{"n1"});
  told(input, 0).programs[0].script = "/home/ada/run/train.py";
  CHECK(finding_of(input, "script-missing").hosts == Hosts{"n1"});
}

TEST_CASE("program: one that a host does not run is not judged there") {
  CheckInput input = healthy_input(2);
  input.spec.programs.push_back({{"./other"}, "/home/ada/run"});
  for (const int rank : input.hosts[1].ranks)
    input.plan.ranks[static_cast<std::size_t>(rank)].program = 1;
  for (std::size_t host : {0, 1}) told(input, host).programs.push_back(tests::healthy_program());
  told(input, 0).programs[1].problem = "find it";
  told(input, 1).programs[0].digest = "other";
  CHECK(all_verdicts(input) == "");
  told(input, 1).programs[1].problem = "find it";
  CHECK(finding_of(input, "program-not-executable").hosts == Hosts{"n2"});
}

TEST_CASE("program: missing libraries are named") {
  CheckInput input = healthy_input(3);
  told(input, 2).programs[0].missing_libraries = {"libcudart.so.13", "GLIBC_2.38 of libc.so.6"};
  CHECK(finding_of(input, "library-missing").fact ==
        "n3: /home/ada/run/train lacks libcudart.so.13, GLIBC_2.38 of libc.so.6");
}

TEST_CASE(
    "program: another content is told with the file, and with the folder where it lies in it") {
  CheckInput input = healthy_input(3);
  told(input, 2).programs[0].digest = "ffff456789abcdef";
  CHECK(finding_of(input, "folder-differs").fact ==
        "/home/ada/run/train differs: n[1-2]: content 01234567, n3: content ffff4567");
  CHECK(finding_of(input, "folder-differs").fix == "rsync -a /home/ada/run/ n3:/home/ada/run/");
  for (std::size_t host : {0, 1, 2}) told(input, host).programs[0].path = "/opt/job/train";
  CHECK(finding_of(input, "program-differs").fix == "rsync -a /opt/job/train n3:/opt/job/train");
  CHECK(finding_of(input, "program-differs").hosts == Hosts{"n3"});
  told(input, 2).programs[0].digest = "";  // too large
  CHECK(all_verdicts(input) == "");
}

TEST_CASE("program: builds of a distribution's programs and of Python may differ, scripts not") {
  CheckInput input = healthy_input(2);
  for (std::size_t host : {0, 1}) {
    told(input, host).programs[0].path = "/usr/bin/bash";
    told(input, host).programs[0].digest = std::to_string(host) + "23456789";
  }
  CHECK(all_verdicts(input) == "");
  for (std::size_t host : {0, 1}) {
    told(input, host).programs[0].path = "/opt/env/bin/python3";
    told(input, host).programs[0].python = {tests::healthy_python()};
    told(input, host).programs[0].script = "/data/train.py";
    told(input, host).programs[0].script_digest = "123456789";
  }
  CHECK(all_verdicts(input) == "");
  told(input, 1).programs[0].script_digest = "99999999";
  CHECK(finding_of(input, "program-differs").fact ==
        "/data/train.py differs: n1: content 12345678, n2: content 99999999");
}

CheckInput with_python(int hosts) {
  CheckInput input = healthy_input(hosts);
  for (CheckedHost& host : input.hosts) {
    host.told->programs[0].path = "/usr/bin/python3";
    host.told->programs[0].python = {tests::healthy_python()};
  }
  return input;
}

wire::PythonFacts& python(CheckInput& input, std::size_t host) {
  return told(input, host).programs[0].python[0];
}

TEST_CASE("python: versions that differ are told in groups") {
  CheckInput input = with_python(3);
  python(input, 1).version = "3.11.9";
  CHECK(all_verdicts(input) == "");
  python(input, 1).version = "3.12.1";
  CHECK(finding_of(input, "python-differs").fact == "Python: n[1,3]: 3.11, n2: 3.12");
  CHECK(finding_of(input, "python-differs").hosts == Hosts{"n2"});
  python(input, 2).packages[0].second = "2.12.0";
  const Finding finding = finding_of(input, "torch-differs");
  CHECK(finding.fact == "torch: n[1-2]: 2.13.0, n3: 2.12.0");
  CHECK(finding.fix == "ssh n3 /usr/bin/python3 -m pip install torch==2.13.0");
}

TEST_CASE("python: packages that only some hosts have are wanted on all") {
  CheckInput input = with_python(3);
  for (CheckedHost& host : input.hosts) host.told->programs[0].python[0].packages.clear();
  CHECK(all_verdicts(input) == "");
  python(input, 2).packages = {{"torch", "2.13.0"}};
  const Finding finding = finding_of(input, "torch-differs");
  CHECK(finding.hosts == Hosts{"n1", "n2"});
  CHECK(finding.fact == "torch: n3: 2.13.0, n[1-2]: none");
  CHECK(finding.fix == "ssh n1 /usr/bin/python3 -m pip install torch==2.13.0; likewise for n2");
}

TEST_CASE("python: another build of libhvrun or another generation of numpy is told") {
  CheckInput input = with_python(2);
  python(input, 1).packages[3].second = "11223344556677";
  CHECK(finding_of(input, "libhvrun-differs").fact ==
        "libhvrun: n1: content aabbccdd, n2: content 11223344");
  python(input, 1).packages[2].second = "2.9.9";
  CHECK(finding_of(input, "numpy-differs").fact == "");
  python(input, 1).packages[2].second = "1.26.4";
  CHECK(finding_of(input, "numpy-differs").fact == "numpy: n1: 2, n2: 1");
}

TEST_CASE("limits: little memory to lock matters between hosts with RDMA adapters") {
  CheckInput input = healthy_input(3);
  told(input, 1).limits.locked_bytes = 8 * kMiB;
  CHECK(all_verdicts(input) == "");
  for (std::size_t host : {0, 1})
    input.hosts[host].facts->rdma = {{"mlx5_0", wire::kNoNode, "", {1}}};
  const Finding finding = finding_of(input, "memlock-low");
  CHECK(finding.fact == "n2: 8 MiB may be locked in memory");
  CHECK(finding.why.find("mlx5_0") != std::string::npos);
  input.hosts[0].facts->rdma[0].ports.clear();  // down
  CHECK(all_verdicts(input) == "");
}

TEST_CASE("limits: files, stacks and processes are judged by the ranks that need them") {
  CheckInput input = healthy_input(2, 4);
  told(input, 0).limits.open_files = 8 + 64;
  CHECK(all_verdicts(input) == "");
  told(input, 0).limits.open_files = 8 + 63;
  CHECK(finding_of(input, "nofile-low").fact == "n1: 71 open files for each of 8 ranks");
  told(input, 1).limits.stack_bytes = kMiB - 1;
  CHECK(finding_of(input, "stack-low").hosts == Hosts{"n2"});
  told(input, 1).limits.processes = 200 + 16 * 4;
  CHECK(finding_of(input, "nproc-low").fact == "");
  told(input, 1).limits.processes -= 1;
  CHECK(finding_of(input, "nproc-low").fact ==
        "n2: 263 processes and threads, of which 200 run, for 4 ranks");
}

TEST_CASE("memory: what is available, or what a cgroup allows, is judged by the ranks") {
  CheckInput input = healthy_input(2, 4);
  told(input, 1).memory.available_bytes = kGiB;
  CHECK(all_verdicts(input) == "");
  told(input, 1).memory.available_bytes = kGiB / 2;
  CHECK(finding_of(input, "memory-low").fact == "n2: 512 MiB available for 4 ranks");
  told(input, 1).memory.cgroup_bytes = 600 * kMiB;
  CHECK(finding_of(input, "memory-limit").fact == "n2: 600 MiB by its cgroup for 4 ranks");
  CHECK(all_verdicts(input) == "memory-limit");
}

TEST_CASE("memory: /dev/shm matters where several ranks of a host use GPUs or PyTorch") {
  CheckInput input = healthy_input(2, 4);
  told(input, 1).memory.shm_bytes = told(input, 1).memory.shm_free_bytes = 64 * kMiB;
  CHECK(all_verdicts(input) == "");
  input.plan.ranks[static_cast<std::size_t>(input.hosts[1].ranks[0])].gpus = {0};
  CHECK(finding_of(input, "shm-small").fact == "n2: 64 MiB of 64 MiB free for 4 ranks");
  CheckInput one = with_python(1);
  told(one, 0).memory.shm_free_bytes = 64 * kMiB;
  CHECK(finding_of(one, "shm-small").hosts == Hosts{"n1"});
  one.hosts[0].ranks.pop_back();
  CHECK(all_verdicts(one) == "");
}

TEST_CASE("load: others matter where they leave ranks too few cores") {
  CheckInput input = healthy_input(2, 2);
  told(input, 1).load.busy_cores = 2.0;
  CHECK(all_verdicts(input) == "");
  told(input, 1).load.busy_cores = 2.1;
  told(input, 1).load.busiest = "python3 (pid 12, ada) 2.0 cores";
  CHECK(finding_of(input, "cores-busy").fact ==
        "n2: 2.1 of 8 cores are busy, most by python3 (pid 12, ada) 2.0 cores");
  // Bound to two cores each the ranks leave four to others.
  for (PlannedRank& rank : input.plan.ranks)
    rank.cores = rank.identity.rank % 2 == 0 ? std::vector<int>{0, 1} : std::vector<int>{2, 3};
  CHECK(all_verdicts(input) == "");
}

TEST_CASE("load: a slow governor matters beside a fast one") {
  CheckInput input = healthy_input(3);
  for (CheckedHost& host : input.hosts) host.told->load.governor = "powersave";
  CHECK(all_verdicts(input) == "");
  told(input, 0).load.governor = "performance";
  CHECK(finding_of(input, "governor-slow").fact == "n[2-3]: powersave, n1: performance");
  CHECK(finding_of(input, "governor-slow").hosts == Hosts{"n2", "n3"});
}

TEST_CASE("ports: each rank needs one, each agent, too, and the first host's another") {
  CheckInput input = healthy_input(2, 3);
  for (std::size_t host : {0, 1}) told(input, host).ports = {"20000-20005", 6, 1};
  CHECK(all_verdicts(input) == "");
  told(input, 1).ports.taken = 3;
  CHECK(finding_of(input, "ports-few").fact ==
        "n2: 3 of 6 ports of 20000-20005 are free, and 4 are needed");
  told(input, 0).ports.taken = 2;
  CHECK(finding_of(input, "ports-few").hosts == Hosts{"n1", "n2"});
  CheckInput one = healthy_input(1, 3);
  told(one, 0).ports = {"20000-20004", 5, 5};
  CHECK(all_verdicts(one) == "");
}

TEST_CASE("while ranks run, what they use themselves is not held against their host") {
  CheckInput input = healthy_input(2, 4);
  told(input, 1).memory.available_bytes = kGiB / 2;
  told(input, 1).limits.processes_of_user = 200;
  told(input, 1).limits.processes = 220;
  told(input, 1).ports = {"20000-20005", 6, 5};
  CHECK(all_verdicts(input) != "");
  input.ranks_may_run = true;
  CHECK(all_verdicts(input) == "");
  told(input, 1).memory.available_bytes = 200 * kMiB;
  told(input, 1).limits.processes = 210;
  CHECK(finding_of(input, "memory-low").fact == "n2: 200 MiB available for 1 rank");
  CHECK(finding_of(input, "nproc-low").hosts == Hosts{"n2"});
}

TEST_CASE("a probe that did not answer was not looked at, and judges nothing there") {
  CheckInput input = healthy_input(3);
  for (std::size_t host : {0, 1}) {
    told(input, host).folders.clear();
    told(input, host).unanswered = {{"folders", "it was killed"}, {"load", "it was killed"}};
  }
  told(input, 0).load = {8, 8, "", "powersave"};
  told(input, 2).unanswered = {{"libraries", "ld.so --list: it hangs"}};
  const CheckReport report = judge(input);
  CHECK(report.findings.empty());
  REQUIRE(report.not_probed.size() == 3);
  CHECK(report.not_probed[0].probe == "folders");
  CHECK(report.not_probed[0].hosts == Hosts{"n1", "n2"});
  CHECK(report.not_probed[0].reason == "it was killed");
  CHECK(report.not_probed[1].probe == "program");
  CHECK(report.not_probed[1].hosts == Hosts{"n3"});
  CHECK(report.not_probed[2].probe == "load");
}

TEST_CASE("hosts that have failed, or were not asked, are judged by none of it") {
  CheckInput input = healthy_input(3);
  input.hosts[0].told.reset();
  input.hosts[1].failure = Error(ErrorKind::kHostLost, "check the host: gone");
  told(input, 1).memory.available_bytes = 0;
  CHECK(all_verdicts(input) == "agent-not-started");
}

}  // namespace
}  // namespace hv::launcher
