// How an agent that has been started by somebody else (srun) comes to hvrun by TCP, and likewise
// how a rank comes to rank 0 (star_exchange.h). Sans I/O.
// SPDX-License-Identifier: Apache-2.0
//
// Fixed sizes up to the proofs, and nothing is acted on before them (authentication.h; the agent is
// the client). Both have the key from the one who started the agent.
//   agent -> hvrun: greeting, kGreetingBytes: a mark, the agent's name, nonce_c
//   hvrun -> agent: kAnswerBytes: nonce_s, proof
//   agent -> hvrun: proof, kProofBytes
// From then on both directions are sealed (sealed_stream.h) and carry frames.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "src/wire/authentication.h"

namespace hv {

constexpr std::size_t kMostAgentName = 255;
constexpr std::size_t kGreetingMarkBytes = 8;
constexpr std::size_t kGreetingBytes = kGreetingMarkBytes + kMostAgentName + 1 + kNonceBytes;
constexpr std::size_t kAnswerBytes = kNonceBytes + kProofBytes;

struct AgentGreeting {
  // "STEP/NODE": of one start of one agent; the agent of an earlier one may come late. 1 to
  // kMostAgentName letters.
  std::string agent;
  Nonce nonce{};
};
std::string encode_greeting(const AgentGreeting& greeting);
// bytes: kGreetingBytes of them. Nothing: no agent has sent them.
std::optional<AgentGreeting> decode_greeting(std::string_view bytes);

// hvrun's side, for one connection.
std::string answer_greeting(const JobKey& key, const AgentGreeting& greeting, const Nonce& server);
bool is_agent_proven(const JobKey& key, const AgentGreeting& greeting, const Nonce& server,
                     std::string_view proof);
// The agent's. answer: kAnswerBytes. Nothing: whoever answers has not the key.
struct ProvenHvrun {
  Nonce nonce;
  std::string proof;  // to send
};
std::optional<ProvenHvrun> check_answer(const JobKey& key, const AgentGreeting& greeting,
                                        std::string_view answer);

// The keys of the two directions.
struct ControlKeys {
  JobKey to_hvrun, to_agent;
};
ControlKeys control_keys(const JobKey& key, const Nonce& agent, const Nonce& hvrun);

// A key as 64 hexadecimal digits, as the agent reads it from its standard input. The text is a
// secret.
std::string key_as_text(const JobKey& key);
bool parse_key(std::string_view text, JobKey* key);

}  // namespace hv
