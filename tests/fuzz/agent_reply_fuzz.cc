// What a host prints on the way to a running agent. The marker is "mark"; the first byte says how
// the stream is cut.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/spawn/agent_program.h"
#include "launcher/spawn/kubectl_advice.h"
#include "launcher/spawn/ssh/ssh_advice.h"
#include "launcher/spawn/start_line.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

struct Answers {
  std::vector<std::string> replies;
  std::string rest;  // the agent's first bytes
  bool operator==(const Answers&) const = default;
};

// Up to the answer that ends the talk, as bootstrap_agent reads it.
Answers read(std::string_view stream, std::size_t step) {
  Answers answers;
  ReplyParser parser("mark");
  for (std::size_t at = 0; at < stream.size(); at += step) {
    parser.feed(stream.substr(at, step));
    while (const auto reply = parser.next()) {
      answers.replies.push_back(std::to_string(static_cast<int>(reply->kind)) + reply->machine +
                                "|" + reply->directory + "|" + reply->reasons);
      if (reply->kind == BootstrapReply::Kind::kNeed) continue;
      const std::size_t read = std::min(at + step, stream.size());
      answers.rest = parser.take_rest() + std::string(stream.substr(read));
      return answers;
    }
    HV_CHECK(parser.flooded() || parser.noise().size() <= ReplyParser::kMaxReply + 4096 + 8,
             "little is kept of what is no answer");
  }
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::size_t step = 1 + input.byte() % 64;
  const std::string_view stream = input.rest();
  HV_CHECK(read(stream, step) == read(stream, std::max<std::size_t>(1, stream.size())),
           "the pieces make no difference");
  (void)advice_for(std::string(stream), {"b"});
  (void)judge_kubectl_words(std::string(stream), {"kubectl"}, "b");
  (void)elf_machine(std::string(stream));
  return 0;
}
