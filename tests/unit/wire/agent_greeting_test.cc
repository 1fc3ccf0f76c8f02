// Tests of how an agent that srun has started proves itself.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/agent_greeting.h"

#include <doctest/doctest.h>

#include "src/wire/sealed_stream.h"

namespace {

hv::JobKey key_of(unsigned char seed) {
  hv::JobKey key;
  key.fill(seed);
  return key;
}

}  // namespace

TEST_CASE("a greeting has one size and comes out as it went in") {
  for (const std::size_t size : {1ul, 7ul, hv::kMostAgentName}) {
    const hv::AgentGreeting greeting{std::string(size, 'n'), hv::random_nonce()};
    const std::string bytes = hv::encode_greeting(greeting);
    REQUIRE(bytes.size() == hv::kGreetingBytes);
    const auto back = hv::decode_greeting(bytes);
    REQUIRE(back);
    CHECK(back->agent == greeting.agent);
    CHECK(back->nonce == greeting.nonce);
  }
}

TEST_CASE("what is no greeting is refused") {
  const std::string good = hv::encode_greeting({"node7", hv::random_nonce()});
  REQUIRE(hv::decode_greeting(good));
  CHECK_FALSE(hv::decode_greeting(""));
  CHECK_FALSE(hv::decode_greeting(good.substr(1)));
  CHECK_FALSE(hv::decode_greeting(good + "x"));
  std::string other_mark = good;
  other_mark[0] ^= 1;
  CHECK_FALSE(hv::decode_greeting(other_mark));
  std::string no_name = good;
  no_name.replace(hv::kGreetingMarkBytes, 5, 5, '\0');
  CHECK_FALSE(hv::decode_greeting(no_name));
  std::string two_names = good;
  two_names[hv::kGreetingMarkBytes + 100] = 'x';
  CHECK_FALSE(hv::decode_greeting(two_names));
  std::string endless = good;
  endless.replace(hv::kGreetingMarkBytes, hv::kMostAgentName + 1, hv::kMostAgentName + 1, 'n');
  CHECK_FALSE(hv::decode_greeting(endless));
}

TEST_CASE("both prove the key, and have the same two keys then") {
  const hv::JobKey key = key_of(7);
  const hv::AgentGreeting greeting{"node7", hv::random_nonce()};
  const hv::Nonce server = hv::random_nonce();
  const auto hvrun = hv::check_answer(key, greeting, hv::answer_greeting(key, greeting, server));
  REQUIRE(hvrun);
  CHECK(hvrun->nonce == server);
  CHECK(hv::is_agent_proven(key, greeting, server, hvrun->proof));
  hv::Sealer sealer(hv::control_keys(key, greeting.nonce, hvrun->nonce).to_hvrun);
  hv::Opener opener(hv::control_keys(key, greeting.nonce, server).to_hvrun);
  hv::Opener other_way(hv::control_keys(key, greeting.nonce, server).to_agent);
  std::string sealed, opened;
  sealer.seal("hello", &sealed);
  CHECK(opener.open(sealed, &opened));
  CHECK(opened == "hello");
  CHECK_FALSE(other_way.open(sealed, &opened));
}

TEST_CASE("another key, name or nonce proves nothing") {
  const hv::JobKey key = key_of(7);
  const hv::AgentGreeting greeting{"node7", hv::random_nonce()};
  const hv::Nonce server = hv::random_nonce();
  const std::string answer = hv::answer_greeting(key, greeting, server);
  CHECK_FALSE(hv::check_answer(key_of(8), greeting, answer));
  CHECK_FALSE(hv::check_answer(key, {"node8", greeting.nonce}, answer));
  CHECK_FALSE(hv::check_answer(key, {"node7", hv::random_nonce()}, answer));
  CHECK_FALSE(hv::check_answer(key, greeting, answer.substr(1)));
  const auto hvrun = hv::check_answer(key, greeting, answer);
  REQUIRE(hvrun);
  CHECK_FALSE(hv::is_agent_proven(key_of(8), greeting, server, hvrun->proof));
  CHECK_FALSE(hv::is_agent_proven(key, {"node8", greeting.nonce}, server, hvrun->proof));
  CHECK_FALSE(hv::is_agent_proven(key, greeting, hv::random_nonce(), hvrun->proof));
  CHECK_FALSE(hv::is_agent_proven(key, greeting, server, ""));
  // hvrun's own proof sent back is none.
  CHECK_FALSE(hv::is_agent_proven(key, greeting, server, answer.substr(hv::kNonceBytes)));
}

TEST_CASE("a key as text is the same key, and anything else is none") {
  const hv::JobKey key = hv::random_key();
  const std::string text = hv::key_as_text(key);
  hv::JobKey back;
  REQUIRE(hv::parse_key(text, &back));
  CHECK(hv::key_as_text(back) == text);
  for (const std::string& other :
       {std::string(), text.substr(1), text + "0", "g" + text.substr(1), text.substr(2) + "\n\n"})
    CHECK_FALSE(hv::parse_key(other, &back));
}
