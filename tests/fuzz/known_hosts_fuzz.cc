// known_hosts files; the first line is the name that is looked for, and the key that it shows.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/known_hosts.h"

#include <algorithm>

#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::view(data, size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::vector<std::string> words = split(input.substr(0, end), ' ');
  // A host's name has passed the parser of hosts: never longer, never with a zero byte.
  const std::string name = words[0].substr(0, std::min<std::size_t>(253, words[0].find('\0')));
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  KnownKeys known;
  known.keys = keys_in(text, name, "f");
  known.without_port = keys_in(text, "other", "f");
  const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  int last = 0;
  for (const KnownKey& key : known.keys) {
    HV_CHECK(key.line > last && key.line <= lines, "lines in order, each once");
    HV_CHECK(!key.type.empty() && !key.base64.empty() && key.file == "f", "a key");
    last = key.line;
  }
  (void)known.has_authority();
  HV_CHECK(known.types().size() <= known.keys.size() + known.without_port.size(), "types");
  const HostKeyVerdict verdict = judge_host_key(known, words.size() > 1 ? words[1] : "AAAA");
  const bool has_line = verdict.kind != HostKeyVerdict::Kind::kUnknown;
  HV_CHECK(has_line == (verdict.line > 0), "whoever is known, changed or revoked stands in a line");
  return 0;
}
