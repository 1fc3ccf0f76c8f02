// SPDX-License-Identifier: Apache-2.0
#include "src/net/port_range.h"

#include "src/base/text.h"

namespace hv {
namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

}  // namespace

std::string PortRange::text() const {
  if (is_any()) return "any";
  return std::to_string(first) + (last == first ? "" : "-" + std::to_string(last));
}

std::optional<PortRange> parse_port_range(std::string_view text) {
  if (text.empty()) return PortRange{};
  const std::size_t dash = text.find('-');
  const auto first = parse_port(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_port(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return PortRange{*first, *last};
}

}  // namespace hv
