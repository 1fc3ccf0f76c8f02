// hvrun-inventory: tells of this host what only the driver's library and hwloc know. Run by
// hvrun-agent where a plan needs that, and by people.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "hvrun_version.h"
#include "launcher/inventory/hwloc_topology.h"
#include "launcher/inventory/inventory.h"
#include "launcher/inventory/nvml_gpus.h"
#include "src/base/blocking_write.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/birth.h"
#include "src/wire/codec.h"

namespace hv::launcher {
namespace {

constexpr char kUsage[] =
    "usage: hvrun-inventory [--version]\n"
    "Prints this host's GPUs and topology as JSON; see hvrun-inventory(1).\n";

// What a library prints must not get between: it is for standard error.
UniqueFd take_stdout() {
  UniqueFd out(::fcntl(1, F_DUPFD_CLOEXEC, 3));
  ::dup2(2, 1);
  return out;
}

int tell(bool for_agent) {
  const UniqueFd out = take_stdout();
  const wire::Inventory inventory = take_inventory({kNvmlLibrary, kHwlocLibrary});
  const std::string text = for_agent ? encode(inventory) : inventory_as_json(inventory);
  const int failure = write_all(out.get(), text);
  if (failure == 0) return 0;
  std::fprintf(stderr, "hvrun-inventory: write to standard output: %s\n",
               errno_text(failure).c_str());
  return 3;
}

int run(int argc, char** argv) {
  const std::string word = argc == 2 ? argv[1] : "";
  if (word == "--version") {
    std::puts("hvrun-inventory " HVRUN_VERSION_TEXT " " HVRUN_BUILD_ID);
    return 0;
  }
  if (word == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (argc == 1 || word == "--wire") return tell(argc == 2);
  std::fputs(kUsage, stderr);
  return 2;
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  hv::open_missing_streams();
  // The agent may have started it from memory, where its file has no name.
  ::prctl(PR_SET_NAME, "hvrun-inventory");
  try {
    return hv::launcher::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvrun-inventory: %s\n", error.what());
    return 3;
  }
}
