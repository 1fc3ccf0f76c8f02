// What kubectl says on stderr when it does not reach a pod, and prints of how long pods have to
// end. The options that it was called with are the first line.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/spawn/kubectl_advice.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

void expect_advice(const std::string& words, const KubectlCommand& command) {
  const std::string reason = kubectl_reason(words);
  HV_CHECK(reason.size() <= 2 * words.size(), "no more than was said");
  HV_CHECK(kubectl_reason(reason).size() <= 2 * reason.size(), "also of what was cut down");
  const KubectlVerdict verdict = judge_kubectl_words(words, command, "w-0");
  HV_CHECK(!verdict.may_pass || !verdict.advice.empty(), "what is known has advice");
  HV_CHECK(verdict.advice.size() <= 2000 + 8 * join(command.options, " ").size(), "in few words");
  const JudgedWords judged = pod_advice(command, "w-0").judge(words);
  HV_CHECK(judged.reason == reason && judged.advice == verdict.advice, "the same for the host");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::view(data, size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  KubectlCommand command{"/opt/kube/kubectl"};
  command.options = split(text.substr(0, end), ' ');
  const std::string_view said = text.substr(std::min(end + 1, text.size()));
  expect_advice(std::string(said), command);
  expect_advice("kubectl ended with exit code 1: " + std::string(said), command);
  HV_CHECK(!termination_period_words(command, {"w-0"}).empty(), "a call");
  if (const auto period = shortest_termination_period(said))
    HV_CHECK(period->count() >= 0 && period->count() <= 24L * 3600, "a day at most");
  return 0;
}
