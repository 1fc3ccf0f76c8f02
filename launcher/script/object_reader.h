// Takes the members of a JSON object one by one, and refuses those that nobody asked for.
// SPDX-License-Identifier: Apache-2.0
//
// Every mistake is Error(kUsage): the file, the member's path in it (/partitions/0/cores), what
// stands there and what was expected. Which members there are is said by who reads them, nowhere
// else.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

// Bounded in size and depth, every name once in its object. Throws Error(kUsage).
nlohmann::json parse_json(std::string_view text, const std::string& source, std::size_t most_bytes);

// What a text may be, and how that is said.
struct TextRule {
  bool (*allows)(std::string_view);
  const char* form;
};

class ObjectReader {
 public:
  // object must outlive the reader.
  ObjectReader(const nlohmann::json& object, std::string source, std::string path);

  // Empty where the member is not there.
  std::string text(const std::string& key, const TextRule& rule);
  std::vector<std::string> texts(const std::string& key, const TextRule& rule);
  // The member must be there.
  std::string required_text(const std::string& key, const TextRule& rule);
  std::optional<int> number(const std::string& key, int lowest, int highest);
  std::optional<std::chrono::seconds> time(const std::string& key);
  bool flag(const std::string& key);
  // A reader of each element of an array of objects, in order.
  void each_object(const std::string& key, const std::function<void(ObjectReader&)>& visit);

  // After the last member. Throws for those that nobody took, with the names that there are.
  void finish() const;
  [[noreturn]] void mistake(const std::string& key, const std::string& what,
                            const std::string& expected) const;

 private:
  const nlohmann::json* find(const std::string& key);
  std::string checked_text(const std::string& key, const nlohmann::json& value,
                           const TextRule& rule) const;

  const nlohmann::json& object_;
  const std::string source_;
  const std::string path_;
  std::vector<std::string> known_;
};

}  // namespace hv::launcher
