// What `ssh -G` prints.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_config.h"

#include <sys/socket.h>

#include <algorithm>

#include "src/base/error.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const SshSurroundings surroundings{"/home/me", "me", "b",
                                     [](const std::string& file) { return file.size() % 7 == 0; }};
  try {
    const SshWords words = parse_ssh_words(fuzz::view(data, size));
    const SshConfig config = interpret_ssh_words(words, surroundings);
    HV_CHECK(!config.host_name.empty(), "a host to connect to");
    HV_CHECK(config.port != 0, "a port");
    HV_CHECK(config.family == AF_UNSPEC || config.family == AF_INET || config.family == AF_INET6,
             "a family that connect(2) knows");
    HV_CHECK(!config.known_hosts.empty(), "a file for new keys");
    HV_CHECK(config.least_rsa_bits >= 0, "bits are not negative");
    HV_CHECK(config.host_key_types.find("-cert-v01@") == std::string::npos, "no certificates");
    const auto required = words.find("requiredrsasize");
    if (required != words.end() && required->second.front() == "4294967296")
      HV_CHECK(config.least_rsa_bits > 0, "a huge demand is not none");
    (void)reason_for_system_ssh(words, surroundings);
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kStart && !error.hint().empty(), "with what to try");
  }
  return 0;
}
