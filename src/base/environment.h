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

// Splits "NAME=VALUE" at its first '='. None: the entry has no '=', or no name before it.
std::optional<std::pair<std::string_view, std::string_view>> split_variable(std::string_view entry);

class Environment {
 public:
  Environment() = default;
  // Copies this process's environ. Call once, in main or when a context is made.
  static Environment of_process();
  // From NAME=VALUE entries. The first of repeated names counts, as in getenv; other entries are
  // dropped.
  static Environment from_entries(const std::vector<std::string>& entries);

  std::optional<std::string> get(std::string_view name) const;
  // None where the value is empty, too.
  std::optional<std::string> get_filled(std::string_view name) const;
  std::string get_or(std::string_view name, std::string_view fallback) const;
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // O(1) for a name that sorts behind all others: sorted names are set in linear time.
  void set(std::string name, std::string value) {
    values_.insert_or_assign(values_.end(), std::move(name), std::move(value));
  }
  void unset(std::string_view name);
  // The variables whose names begin with the prefix. Does not visit the others.
  Environment with_prefix(std::string_view prefix) const;
  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }
  // NAME=VALUE, sorted by name.
  std::vector<std::string> entries() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// Changes this process's environ, for libraries that read it; keeps a value that is set. Call it
// before any thread may read environ.
void set_in_process_if_unset(const char* name, const char* value);
// Replaces a value that is set, too. For a process that has no other thread.
void set_in_process(const char* name, const char* value);

}  // namespace hv
