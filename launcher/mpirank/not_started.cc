// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/not_started.h"

namespace hv::launcher {
namespace {

constexpr std::string_view kBehindHost = ": ";
constexpr std::string_view kBeforeHint = "\n  try: ";

}  // namespace

std::string not_started_text(const NotStarted& one) {
  return std::string(kNotStartedMark) + one.host + std::string(kBehindHost) + one.problem.what +
         std::string(kBeforeHint) + one.problem.hint + "\n";
}

std::optional<NotStarted> read_not_started(std::string_view text) {
  if (!text.starts_with(kNotStartedMark) || !text.ends_with('\n')) return std::nullopt;
  text.remove_prefix(kNotStartedMark.size());
  const std::size_t host = text.find(kBehindHost), hint = text.find(kBeforeHint);
  if (hint == std::string_view::npos || host > hint) return std::nullopt;
  const std::size_t what = host + kBehindHost.size(), advice = hint + kBeforeHint.size();
  return NotStarted{std::string(text.substr(0, host)),
                    {std::string(text.substr(what, hint - what)),
                     std::string(text.substr(advice, text.size() - 1 - advice))}};
}

}  // namespace hv::launcher
