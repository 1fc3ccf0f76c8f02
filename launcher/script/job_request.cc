// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/job_request.h"

#include "launcher/script/job_time.h"

namespace hv::launcher {

std::optional<EarlySignal> parse_early_signal(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view name = text.substr(0, at);
  if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
  if (name != "USR1" && name != "USR2") return std::nullopt;
  const std::string_view rest = text.substr(at + 1);
  const bool is_bare = rest.find_first_not_of("0123456789") == std::string_view::npos;
  const auto before = parse_job_time(is_bare ? std::string(rest) + "s" : std::string(rest));
  if (!before) return std::nullopt;
  return EarlySignal{std::string(name), *before};
}

}  // namespace hv::launcher
