// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/groups.h"

#include <algorithm>
#include <map>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

struct NumberedName {
  std::string before, digits, behind;  // "gpu", "07", ".site"
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// By its last number before the first dot, behind which numbers are no host's. digits: at most 9.
NumberedName take_apart(const std::string& name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  std::size_t end = dot;
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1]) && end - begin < 9) --begin;
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

bool is_address(const std::string& name) {
  return name.find(':') != std::string::npos ||
         std::all_of(name.begin(), name.end(), [](char c) { return is_digit(c) || c == '.'; });
}

std::string padded(long number, std::size_t width) {
  const std::string text = std::to_string(number);
  return std::string(width > text.size() ? width - text.size() : 0, '0') + text;
}

// "1-3,7" of sorted numbers, each so wide.
std::string ranges(const std::vector<long>& numbers, std::size_t width) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(padded(numbers[i], width) +
                    (last == i ? "" : "-" + padded(numbers[last], width)));
    i = last + 1;
  }
  return join(parts, ",");
}

}  // namespace

std::string brief_names(const std::vector<std::string>& names) {
  struct Family {
    NumberedName first;
    std::vector<std::string> names;
    std::vector<long> numbers;
  };
  std::vector<Family> families;
  for (const std::string& name : names) {
    const NumberedName parts = is_address(name) ? NumberedName{name, "", ""} : take_apart(name);
    const auto family = std::find_if(families.begin(), families.end(), [&](const Family& one) {
      return !parts.digits.empty() && one.first.before == parts.before &&
             one.first.behind == parts.behind && one.first.digits.size() == parts.digits.size();
    });
    Family& its = family != families.end() ? *family : families.emplace_back();
    if (its.names.empty()) its.first = parts;
    its.names.push_back(name);
    its.numbers.push_back(parts.digits.empty() ? 0 : std::stol(parts.digits));
  }
  std::vector<std::string> texts;
  for (Family& family : families) {
    std::sort(family.numbers.begin(), family.numbers.end());
    family.numbers.erase(std::unique(family.numbers.begin(), family.numbers.end()),
                         family.numbers.end());
    const bool is_one = family.first.digits.empty() || family.numbers.size() == 1;
    texts.push_back(is_one ? family.names[0]
                           : family.first.before + "[" +
                                 ranges(family.numbers, family.first.digits.size()) + "]" +
                                 family.first.behind);
  }
  return join(texts, ",");
}

std::string likewise(const std::vector<std::string>& hosts) {
  if (hosts.size() < 2) return "";
  return "; likewise for " + brief_names({hosts.begin() + 1, hosts.end()});
}

std::vector<FactGroup> group_facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::vector<FactGroup> groups;
  std::map<std::string, std::size_t> places;
  for (const auto& [host, fact] : facts) {
    const auto [place, is_new] = places.try_emplace(fact, groups.size());
    if (is_new) groups.push_back({fact, {}});
    groups[place->second].hosts.push_back(host);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FactGroup& a, const FactGroup& b) {
    return a.hosts.size() > b.hosts.size();
  });
  return groups;
}

std::string groups_as_text(const std::vector<FactGroup>& groups) {
  std::vector<std::string> parts;
  for (const FactGroup& group : groups)
    parts.push_back(brief_names(group.hosts) + ": " + group.fact);
  return join(parts, ", ");
}

std::vector<std::string> odd_hosts(const std::vector<FactGroup>& groups) {
  std::vector<std::string> hosts;
  for (std::size_t i = 1; i < groups.size(); ++i)
    hosts.insert(hosts.end(), groups[i].hosts.begin(), groups[i].hosts.end());
  return hosts;
}

}  // namespace hv::launcher
