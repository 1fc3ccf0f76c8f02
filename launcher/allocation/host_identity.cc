// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_identity.h"

#include "src/base/text.h"

namespace hv::launcher {
namespace {

bool is_short_form(const std::string& name, const std::string& of) {
  return of.size() > name.size() && of[name.size()] == '.' && of.starts_with(name);
}

}  // namespace

bool is_address(std::string_view name) {
  return name.find(':') != std::string_view::npos ||
         name.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_same_host(std::string_view one, std::string_view other) {
  const std::string first = lower(one), second = lower(other);
  if (first == second) return true;
  if (first.empty() || second.empty() || is_address(first) || is_address(second)) return false;
  return is_short_form(first, second) || is_short_form(second, first);
}

std::string shortest_form(std::string_view name) {
  const std::string form = lower(name);
  return is_address(form) ? form : form.substr(0, form.find('.'));
}

}  // namespace hv::launcher
