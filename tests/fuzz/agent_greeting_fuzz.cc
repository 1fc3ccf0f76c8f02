// What strangers say at the gate for agents: a greeting, an answer, a proof, a key, an address.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/agent_greeting.h"

#include <algorithm>

#include "launcher/agent/agent_options.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

const JobKey& key() {
  static const JobKey fixed;  // all zero
  return fixed;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  const AgentGreeting greeting{"node1", {}};
  const std::string words = encode_greeting(greeting),
                    answer = answer_greeting(key(), greeting, {});
  return {words, words + answer, words + answer + check_answer(key(), greeting, answer)->proof,
          key_as_text(key()), "10.0.0.1:5,[fd00::1]:6"};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all = fuzz::view(data, size);
  const std::string_view words = all.substr(0, kGreetingBytes);
  std::string_view rest = all.substr(words.size());
  if (const auto greeting = decode_greeting(words)) {
    HV_CHECK(encode_greeting(*greeting) == words, "a greeting has one form");
    const std::string_view answer = rest.substr(0, kAnswerBytes);
    rest.remove_prefix(answer.size());
    const auto hvrun = check_answer(key(), *greeting, answer);
    HV_CHECK(!hvrun || answer == answer_greeting(key(), *greeting, hvrun->nonce),
             "only hvrun's answer is taken");
    const bool is_agent = is_agent_proven(key(), *greeting, Nonce{}, rest);
    const auto own = check_answer(key(), *greeting, answer_greeting(key(), *greeting, Nonce{}));
    HV_CHECK(is_agent == (rest == own->proof), "only the agent's proof is taken");
  }
  JobKey read;
  if (parse_key(all, &read)) HV_CHECK(key_as_text(read).size() == all.size(), "a key has one size");
  const auto options = launcher::parse_agent_options({"--connect", std::string(all)});
  HV_CHECK(!options || !options->hvrun.empty(), "whoever is to connect knows where");
  return 0;
}
