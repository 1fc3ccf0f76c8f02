// Children in a real cgroup v2, where the test may make one: launcher/agent/ending/job_cgroup.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/job_cgroup.h"

#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "src/base/text.h"
#include "src/process/child.h"
#include "src/wire/authentication.h"
#include "tests/unit/pipe.h"

using namespace hv;
using namespace hv::launcher;

namespace {

std::vector<sock_filter> refuse_clone3(unsigned error) {
  return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

// A write of one byte is how a process enters a cgroup (little-endian: args[2] begins with the low
// half).
std::vector<sock_filter> refuse_one_byte_writes() {
  return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

// The cgroups of `cat /proc/self/cgroup`, started in group by a thread under the filter; else why
// it did not start.
std::string cgroups_of_child(const JobCgroup& group, std::vector<sock_filter> filter) {
  tests::Pipe output;
  ChildOptions options;
  options.stdout_fd = output.writer.get();
  options.cgroup = group.directory();
  options.die_with_parent = false;  // its parent is the thread
  const Command command{{"cat", "/proc/self/cgroup"}, "/usr/bin/cat", {}, {}};
  bool is_filtered = false;
  SpawnResult spawned;
  std::thread([&] {
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    is_filtered = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    spawned = spawn_child(command, options);
  }).join();
  CHECK(is_filtered);
  if (spawned.pid < 0) return spawned.doing + ": " + errno_text(spawned.error);
  const std::string text = output.read_all();
  CHECK(::waitpid(spawned.pid, nullptr, 0) == spawned.pid);
  return text;
}

// The cgroup of this test's job; none where this process may not make one.
struct OwnGroup {
  std::string job_id = random_hex(12);
  JobCgroup group = JobCgroup::create(job_id, 0);
  std::string name = "/hvrun-" + job_id + "-0\n";
  OwnGroup() {
    if (!group.exists()) MESSAGE("skipped: there is no cgroup v2 that this process may write");
  }
  ~OwnGroup() { CHECK(group.remove()); }
};

bool has_clone3() { return ::syscall(SYS_clone3, nullptr, 0) < 0 && errno == EINVAL; }

}  // namespace

TEST_CASE("a child starts in its cgroup, and need not enter it") {
  const OwnGroup own;
  if (!own.group.exists()) return;
  if (!has_clone3()) {
    MESSAGE("skipped: this kernel, or a filter of this container, has no clone3");
    return;
  }
  const std::string cgroups = cgroups_of_child(own.group, refuse_one_byte_writes());
  CHECK_MESSAGE(cgroups.find(own.name) != std::string::npos, cgroups);
}

TEST_CASE("a child enters its cgroup where clone3 is refused") {
  const OwnGroup own;
  if (!own.group.exists()) return;
  for (const unsigned error : {ENOSYS, EPERM}) {
    const std::string cgroups = cgroups_of_child(own.group, refuse_clone3(error));
    CHECK_MESSAGE(cgroups.find(own.name) != std::string::npos, cgroups);
  }
}
