// SPDX-License-Identifier: Apache-2.0
#include "src/wire/agent_greeting.h"

#include <sodium.h>

#include <algorithm>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/wire/sealed_stream.h"

namespace hv {
namespace {

constexpr char kMark[kGreetingMarkBytes + 1] = "hvagent1";

std::string purpose_of(const AgentGreeting& greeting) { return "control " + greeting.agent; }

template <class Array>
Array array_of(std::string_view bytes) {
  Array result;
  std::copy_n(bytes.begin(), result.size(), result.begin());
  return result;
}

template <class Array>
std::string text_of(const Array& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string encode_greeting(const AgentGreeting& greeting) {
  HV_CHECK(!greeting.agent.empty() && greeting.agent.size() <= kMostAgentName,
           "an agent's name fits into its greeting");
  std::string bytes = std::string(kMark) + greeting.agent;
  bytes.resize(kGreetingMarkBytes + kMostAgentName + 1, '\0');
  return bytes + text_of(greeting.nonce);
}

std::optional<AgentGreeting> decode_greeting(std::string_view bytes) {
  if (bytes.size() != kGreetingBytes || bytes.substr(0, kGreetingMarkBytes) != kMark)
    return std::nullopt;
  const std::string_view name = bytes.substr(kGreetingMarkBytes, kMostAgentName + 1);
  const std::size_t length = std::min(name.find('\0'), name.size());
  const bool is_padded = name.find_first_not_of('\0', length) == std::string_view::npos;
  if (length == 0 || length > kMostAgentName || !is_padded) return std::nullopt;
  return AgentGreeting{std::string(name.substr(0, length)),
                       array_of<Nonce>(bytes.substr(kGreetingBytes - kNonceBytes))};
}

std::string answer_greeting(const JobKey& key, const AgentGreeting& greeting, const Nonce& server) {
  return text_of(server) + text_of(server_proof(key, purpose_of(greeting), greeting.nonce, server));
}

bool is_agent_proven(const JobKey& key, const AgentGreeting& greeting, const Nonce& server,
                     std::string_view proof) {
  return proof.size() == kProofBytes &&
         equal_proofs(array_of<Proof>(proof),
                      client_proof(key, purpose_of(greeting), greeting.nonce, server));
}

std::optional<ProvenHvrun> check_answer(const JobKey& key, const AgentGreeting& greeting,
                                        std::string_view answer) {
  if (answer.size() != kAnswerBytes) return std::nullopt;
  const auto server = array_of<Nonce>(answer);
  const auto proof = array_of<Proof>(answer.substr(kNonceBytes));
  const std::string purpose = purpose_of(greeting);
  if (!equal_proofs(proof, server_proof(key, purpose, greeting.nonce, server))) return std::nullopt;
  return ProvenHvrun{server, text_of(client_proof(key, purpose, greeting.nonce, server))};
}

ControlKeys control_keys(const JobKey& key, const Nonce& agent, const Nonce& hvrun) {
  return {stream_key(key, "agent to hvrun", agent, hvrun),
          stream_key(key, "hvrun to agent", agent, hvrun)};
}

std::string key_as_text(const JobKey& key) { return hex(key.data(), key.size()); }

bool parse_key(std::string_view text, JobKey* key) {
  std::size_t size = 0;
  const char* end = nullptr;
  return text.size() == 2 * JobKey::kBytes &&
         sodium_hex2bin(key->data(), key->size(), text.data(), text.size(), nullptr, &size, &end) ==
             0 &&
         size == JobKey::kBytes && end == text.data() + text.size();
}

}  // namespace hv
