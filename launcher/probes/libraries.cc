// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/libraries.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/process/captured.h"

namespace hv::launcher {
namespace {

constexpr const char* kGlibcMissing = "error while loading shared libraries: ";
constexpr const char* kMuslMissing = "Error loading shared library ";

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The text between two parts of a line; "" where the line lacks one of them.
std::string text_between(const std::string& line, const std::string& before,
                         const std::string& after) {
  const std::size_t at = line.find(before);
  if (at == std::string::npos) return {};
  const std::size_t end = line.find(after, at + before.size());
  if (end == std::string::npos) return {};
  return line.substr(at + before.size(), end - at - before.size());
}

void add_missing(const std::string& name, LibraryList* list) {
  if (name.empty()) return;
  if (std::find(list->missing.begin(), list->missing.end(), name) == list->missing.end())
    list->missing.push_back(name);
}

// "\tlibm.so.6 => /lib/libm.so.6 (0x7f...)", "\tlibx.so => not found"; the vDSO and the loader have
// no arrow.
void parse_line(const std::string& line, LibraryList* list) {
  add_missing(text_between(line, kGlibcMissing, ": "), list);
  add_missing(text_between(line, kMuslMissing, ": "), list);
  const std::string version = text_between(line, ": version `", "' not found");
  if (!version.empty()) {
    const std::string file = line.substr(0, line.find(": version `"));
    add_missing(version + " of " + file_name(file.substr(file.rfind(' ') + 1)), list);
  }
  const std::size_t arrow = line.find(" => ");
  if (arrow == std::string::npos) return;
  const std::string name(trim(line.substr(0, arrow)));
  const std::string rest = line.substr(arrow + 4);
  if (rest.rfind("not found", 0) == 0) return add_missing(name, list);
  const std::string file = rest.substr(0, rest.rfind(" (0x"));
  if (!file.empty()) list->libraries.emplace_back(name, file);
}

}  // namespace

LibraryList parse_library_list(const std::string& text) {
  LibraryList list;
  for (const std::string& line : split(text, '\n')) parse_line(line, &list);
  std::sort(list.libraries.begin(), list.libraries.end());
  return list;
}

std::string list_libraries(const std::string& loader, const std::string& program,
                           const std::string& directory, const Environment& environment,
                           TimePoint until, LibraryList* list) {
  Command command;
  command.argv = {loader, "--list", program};
  command.program = loader;
  command.directory = directory;
  command.environment = environment.entries();
  Captured captured = capture_output(command, until - now(), true);
  // --list of glibc stops at the first missing library. With LD_TRACE_LOADED_OBJECTS it reports all
  // of them, but other loaders ignore that variable and would run the program.
  if (captured.text.find(kGlibcMissing) != std::string::npos) {
    Environment tracing = environment;
    tracing.set("LD_TRACE_LOADED_OBJECTS", "1");
    command.argv = {loader, program};
    command.environment = tracing.entries();
    captured = capture_output(command, until - now(), true);
  }
  if (!captured.trouble.empty()) return loader + " --list: " + captured.trouble;
  *list = parse_library_list(captured.text);
  const bool has_entries = !list->libraries.empty() || !list->missing.empty();
  if (captured.is_well() || has_entries) return "";
  return loader + " --list " + program + ": " + captured.status->text();
}

}  // namespace hv::launcher
