// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/facts.h"

#include <sys/utsname.h>

#include "launcher/facts/cores.h"
#include "launcher/facts/gpus.h"
#include "launcher/facts/memory.h"
#include "src/net/interfaces.h"

namespace hv::launcher {

wire::Facts gather_facts(const std::string& root) {
  wire::Facts facts;
  utsname names{};
  if (::uname(&names) == 0) {
    facts.hostname = names.nodename;
    facts.machine = names.machine;
  }
  facts.usable_cores = usable_cores(root);
  facts.gpus = read_gpus(root);
  facts.addresses = interface_addresses();
  facts.memory_bytes = memory_bytes(root);
  return facts;
}

}  // namespace hv::launcher
