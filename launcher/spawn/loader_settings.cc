// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/loader_settings.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::launcher {

bool is_loader_failure(const std::string& words) {
  static constexpr const char* kFailures[] = {"error while loading shared libraries",
                                              "symbol lookup error",
                                              "relocation error",
                                              "OpenSSL version mismatch",
                                              "not found (required by",
                                              "SIGSEGV",
                                              "SIGABRT",
                                              "SIGBUS",
                                              "SIGILL"};
  return std::any_of(std::begin(kFailures), std::end(kFailures),
                     [&words](const char* part) { return words.find(part) != std::string::npos; });
}

bool remove_loader_settings(std::vector<std::string>* environment) {
  return std::erase_if(*environment, [](const std::string& entry) {
           return entry.starts_with("LD_LIBRARY_PATH=") || entry.starts_with("LD_PRELOAD=");
         }) > 0;
}

void warn_of_loader_settings(const std::string& program, const std::string& words) {
  static std::set<std::string> warned;
  if (!warned.insert(program).second) return;
  HV_LOG(kWarn, "start") << program
                         << " does not run with your LD_LIBRARY_PATH or LD_PRELOAD, so hvrun runs "
                            "it without them (ranks keep them): "
                         << printable(words, 300);
}

}  // namespace hv::launcher
