// The process's environment as a value: read once at the edge, passed as an argument from there on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hv {

// "NAME=VALUE" at its first '='. None for an entry without a '=' and for one without a name.
std::optional<std::pair<std::string_view, std::string_view>> split_variable(std::string_view entry);

class Environment {
 public:
  Environment() = default;
  // Copies this process's environ. Call once, in main or when a context is made.
  static Environment of_process();
  // From NAME=VALUE entries; of repeated names the first counts, as in getenv; other entries are
  // dropped.
  static Environment from_entries(const std::vector<std::string>& entries);

  std::optional<std::string> get(std::string_view name) const;
  // An empty one is none.
  std::optional<std::string> get_filled(std::string_view name) const;
  std::string get_or(std::string_view name, std::string_view fallback) const;
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // O(1) for a name behind all others, so that sorted ones are set fast.
  void set(std::string name, std::string value) {
    values_.insert_or_assign(values_.end(), std::move(name), std::move(value));
  }
  void unset(std::string_view name);
  // The variables whose names begin so; no other is looked at.
  Environment with_prefix(std::string_view prefix) const;
  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }
  // NAME=VALUE, sorted by name.
  std::vector<std::string> entries() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// For libraries that read the process's own, before any thread of theirs does; one that is set
// stays.
void set_in_process_if_unset(const char* name, const char* value);
// The same, whatever it is. For a process that has no other thread.
void set_in_process(const char* name, const char* value);

}  // namespace hv
