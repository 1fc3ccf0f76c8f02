// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/exec_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kLeastBytes = 128 << 10, kMostBytes = 6 << 20;  // the kernel's bounds
constexpr std::size_t kShownLargest = 3, kShownName = 100;

// An argument or a variable, for messages.
struct SizedString {
  std::uint64_t bytes = 0;
  std::string name;  // "TOKENS", "argument 3"
};

std::vector<SizedString> sized_strings(const std::vector<std::string>& argv,
                                       const std::vector<std::string>& environment) {
  std::vector<SizedString> strings;
  for (std::size_t i = 0; i < argv.size(); ++i)
    strings.push_back({argv[i].size() + 1, "argument " + std::to_string(i)});
  for (const std::string& entry : environment)
    strings.push_back({entry.size() + 1, printable(entry.substr(0, entry.find('=')), kShownName)});
  return strings;
}

// "TOKENS (1.9 MiB), argument 3 (12 KiB)".
std::string largest_as_text(std::vector<SizedString> strings) {
  const std::size_t shown = std::min(kShownLargest, strings.size());
  std::partial_sort(strings.begin(), strings.begin() + static_cast<std::ptrdiff_t>(shown),
                    strings.end(),
                    [](const SizedString& a, const SizedString& b) { return a.bytes > b.bytes; });
  strings.resize(shown);
  std::vector<std::string> texts;
  for (const SizedString& each : strings)
    texts.push_back(each.name + " (" + format_bytes(each.bytes) + ")");
  return join(texts, ", ");
}

}  // namespace

ExecLimits exec_limits() {
  ExecLimits limits;
  limits.one_string = 32 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rlimit stack{};
  const bool is_known = ::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY;
  limits.all_strings = is_known
                           ? std::clamp<std::uint64_t>(stack.rlim_cur / 4, kLeastBytes, kMostBytes)
                           : kMostBytes;
  return limits;
}

std::optional<wire::Problem> exec_size_problem(const std::string& program,
                                               const std::vector<std::string>& argv,
                                               const std::vector<std::string>& environment,
                                               const ExecLimits& limits) {
  std::vector<SizedString> strings = sized_strings(argv, environment);
  const std::string doing = "execute " + printable(program, 1000) + ": ";
  std::uint64_t all = program.size() + 1;  // the kernel copies its path, too
  for (const SizedString& each : strings) {
    all += each.bytes + sizeof(char*);
    if (each.bytes <= limits.one_string) continue;
    return wire::Problem{doing + each.name + " takes " + std::to_string(each.bytes - 1) +
                             " bytes, and Linux takes at most " +
                             std::to_string(limits.one_string - 1) + " in one variable or argument",
                         "put it into a file, and name that file instead"};
  }
  if (all <= limits.all_strings) return std::nullopt;
  std::uint64_t arguments = 0;
  for (const std::string& argument : argv) arguments += argument.size() + 1 + sizeof(char*);
  if (arguments > all / 2)
    return wire::Problem{doing + "its arguments and environment take " + format_bytes(all) +
                             ", and this host takes at most " + format_bytes(limits.all_strings) +
                             ", a quarter of the stack's limit; " +
                             count_of(argv.size(), "argument") + " take " + format_bytes(arguments),
                         "put the arguments into a file, and name that file instead; up to 6 MiB "
                         "are taken where the stack's limit is 24 MiB there (ulimit -s)"};
  return wire::Problem{
      doing + "its arguments and environment take " + format_bytes(all) +
          ", and this host takes at most " + format_bytes(limits.all_strings) +
          ", a quarter of the stack's limit; the largest: " + largest_as_text(std::move(strings)),
      "unset variables that ranks do not need, or --clean-env with -x for those that they do; long "
      "lists belong into files; up to 6 MiB are taken where the stack's limit is 24 MiB there "
      "(ulimit -s)"};
}

}  // namespace hv::launcher
