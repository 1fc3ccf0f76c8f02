// Scripts of MPI launchers that call kubectl; the first line is the value of $NS in the
// environment.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/rsh_script.h"

#include <algorithm>

#include "src/base/error.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::view(data, size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  Environment environment;
  environment.set("NS", std::string(input.substr(0, end)));
  const std::string_view script = input.substr(std::min(end + 1, input.size()));
  try {
    const KubectlCommand command = kubectl_in_script(script, "s", environment);
    HV_CHECK(is_kubectl(command.program), "kubectl's program");
    for (const std::string& word : exec_words(command, "pod"))
      HV_CHECK(word.size() <= kMostScriptBytes + input.size(), "words that were written there");
    std::vector<std::string> words = exec_words(command, "pod");
    const KubectlCall again = parse_kubectl_call(words, "s");
    HV_CHECK(again.subcommand == "exec" && again.operands == std::vector<std::string>{"pod"},
             "kubectl itself finds the pod, whatever its options are");
    HV_CHECK(again.command == command, "and the same options");
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kUsage && !error.hint().empty(), "with what to try");
  }
  return 0;
}
