// An ssh-agent's list of keys.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_agent.h"

#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

std::string sized(const std::string& text) {
  return std::string{0, 0, 0, static_cast<char>(text.size())} + text;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  const std::string key = sized(sized("ssh-ed25519") + sized(std::string(32, 'k'))) + sized("me@b");
  return {std::string{12, 0, 0, 0, 2} + key + key, std::string{12, 0, 0, 0, 0},
          std::string("\x0c\xff\xff\xff\xff", 5) + key};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view message = fuzz::view(data, size);
  std::vector<AgentKey> keys;
  const bool is_list = parse_agent_identities(message, &keys);
  HV_CHECK(keys.size() * 8 <= size, "each key has its lengths");
  for (const AgentKey& key : keys)
    HV_CHECK(key.type.size() + 4 <= key.blob.size(), "the type lies in the blob");
  HV_CHECK(!is_list || message[0] == 12, "an answer to the question");
  HV_CHECK(base64(message).size() == (size + 2) / 3 * 4, "base64 comes in fours");
  return 0;
}
