// SPDX-License-Identifier: Apache-2.0
#include "src/base/environment.h"

extern char** environ;

namespace hv {

std::optional<std::pair<std::string_view, std::string_view>> split_variable(
    std::string_view entry) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return std::pair(entry.substr(0, equals), entry.substr(equals + 1));
}

Environment Environment::of_process() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) entries.emplace_back(*entry);
  return from_entries(entries);
}

Environment Environment::from_entries(const std::vector<std::string>& entries) {
  Environment environment;
  // The hint makes sorted entries, such as those of entries(), O(1) each.
  for (const std::string& entry : entries)
    if (const auto variable = split_variable(entry))
      environment.values_.emplace_hint(environment.values_.end(), variable->first,
                                       variable->second);
  return environment;
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Environment::get_filled(std::string_view name) const {
  auto value = get(name);
  return value && value->empty() ? std::nullopt : value;
}

std::string Environment::get_or(std::string_view name, std::string_view fallback) const {
  return get(name).value_or(std::string(fallback));
}

void Environment::unset(std::string_view name) {
  const auto found = values_.find(name);
  if (found != values_.end()) values_.erase(found);
}

Environment Environment::with_prefix(std::string_view prefix) const {
  Environment result;
  for (auto next = values_.lower_bound(prefix);
       next != values_.end() && next->first.starts_with(prefix); ++next)
    result.set(next->first, next->second);
  return result;
}

std::vector<std::string> Environment::entries() const {
  std::vector<std::string> entries;
  entries.reserve(values_.size());
  for (const auto& [name, value] : values_) entries.push_back(name + "=" + value);
  return entries;
}

void set_in_process_if_unset(const char* name, const char* value) { ::setenv(name, value, 0); }

void set_in_process(const char* name, const char* value) { ::setenv(name, value, 1); }

}  // namespace hv
