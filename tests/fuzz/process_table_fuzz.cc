// /proc/PID/stat (the first line's place in the table), status and environ.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/process_table.h"

#include <algorithm>

#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::view(data, size);
  std::vector<ProcessEntry> table;
  std::vector<std::string> lines = split(text, '\n');
  lines.emplace_back(text);  // a name may hold newlines
  for (const std::string& line : lines) {
    const auto process = parse_stat(line);
    if (!process) continue;
    // kill(2) takes 0 and -1 for groups and everybody.
    HV_CHECK(process->pid > 0, "a process");
    HV_CHECK(process->name.size() < line.size(), "a name out of the line");
    (void)is_on_its_way_out(*process, text);
    HV_CHECK(describe(*process).size() < 200, "few words");
    table.push_back(*process);
  }
  const std::vector<ProcessEntry> below = descendants(table, {1});
  HV_CHECK(below.size() <= table.size(), "each once");
  for (const ProcessEntry& process : below) HV_CHECK(process.pid != 1, "themselves not");
  const std::string_view entry = text.substr(0, text.find('\0'));
  if (!entry.empty()) HV_CHECK(environ_holds(text, entry), "the first entry is in it");
  return 0;
}
