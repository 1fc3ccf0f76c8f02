// hvrun-agent: started by hvrun on every host of a job; speaks with it over its standard streams.
// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "hvrun_version.h"
#include "launcher/agent/agent.h"
#include "launcher/agent/guard.h"
#include "src/base/environment.h"
#include "src/process/birth.h"

namespace {

int explain_usage() {
  std::fputs(
      "hvrun-agent is started by hvrun and speaks with it; it has one option of its own, "
      "--version.\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  hv::open_missing_streams();
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("hvrun-agent " HVRUN_VERSION_TEXT " " HVRUN_BUILD_ID);
    return 0;
  }
  if (argc != 1) return explain_usage();
  hv::raise_open_file_limit();
  hv::keep_freed_memory();
  const hv::Environment environment = hv::Environment::of_process();
  hv::launcher::GuardBoard board;
  hv::UniqueFd guard_life = hv::launcher::split_off_guard(argc, argv, &board);
  // The file may be called something else where hvrun has copied it.
  ::prctl(PR_SET_NAME, "hvrun-agent");
  hv::launcher::Agent agent(environment, std::move(guard_life), board);
  const int code = agent.run();
  // The ranks' folders and sockets are given up by ~Agent; nothing of the job runs any more.
  return code;
}
