// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_names.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "launcher/allocation/node_expression.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Messages count more names than these.
constexpr std::size_t kMostUncounted = 8;
// Names and ranges that a message shows.
constexpr std::size_t kMostShown = 16;

struct NumberedName {
  std::string before, digits, behind;  // "gpu", "07", ".site"
};

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// By its last number before the first dot, behind which numbers are no host's. digits: at most 9.
NumberedName take_apart(const std::string& name) {
  const bool is_address =
      name.find(':') != std::string::npos ||
      std::all_of(name.begin(), name.end(), [](char c) { return is_decimal(c) || c == '.'; });
  if (is_address) return {name, "", ""};
  std::size_t end = std::min(name.find('.'), name.size());
  while (end > 0 && !is_decimal(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_decimal(name[begin - 1]) && end - begin < 9) --begin;
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

bool has_leading_zero(const NumberedName& name) {
  return name.digits.size() > 1 && name.digits[0] == '0';
}

// Names that become one, with brackets.
struct Family {
  std::string before, behind;
  std::size_t width = 0;  // of numbers with leading zeros; 0: they have none
  std::string only;       // the name, where it has no number
  std::set<std::uint64_t> numbers{};
};

// In the order of their first names.
std::vector<Family> families_of(const std::vector<std::string>& names) {
  std::vector<NumberedName> parts;
  // Numbers of a width in which one begins with a zero belong together: 08, 09, 10.
  std::set<std::pair<std::pair<std::string, std::string>, std::size_t>> padded_widths;
  for (const std::string& name : names) {
    parts.push_back(take_apart(name));
    const NumberedName& one = parts.back();
    if (has_leading_zero(one)) padded_widths.insert({{one.before, one.behind}, one.digits.size()});
  }
  std::vector<Family> families;
  std::map<std::pair<std::pair<std::string, std::string>, std::size_t>, std::size_t> places;
  std::set<std::string> unnumbered;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NumberedName& one = parts[i];
    if (one.digits.empty()) {
      if (unnumbered.insert(names[i]).second) families.push_back({"", "", 0, names[i]});
      continue;
    }
    const std::pair stem(one.before, one.behind);
    const std::size_t width =
        padded_widths.count({stem, one.digits.size()}) > 0 ? one.digits.size() : 0;
    const auto [place, is_new] = places.try_emplace({stem, width}, families.size());
    if (is_new) families.push_back({one.before, one.behind, width, ""});
    families[place->second].numbers.insert(static_cast<std::uint64_t>(*parse_integer(one.digits)));
  }
  return families;
}

struct FoldedNames {
  std::vector<std::string> pieces;
  std::size_t shown = 0;  // names that the text stands for
};

// most: names and ranges.
FoldedNames fold(const std::vector<Family>& families, std::size_t most) {
  FoldedNames folded;
  std::vector<std::string>& pieces = folded.pieces;
  for (const Family& family : families) {
    if (most == 0) break;
    if (!family.only.empty()) {
      pieces.push_back(family.only);
      ++folded.shown;
      --most;
      continue;
    }
    std::vector<std::string> items;
    for (const NumberRange& range : ranges_of(family.numbers)) {
      if (most == 0) break;
      items.push_back(range.text(family.width));
      folded.shown += range.last - range.first + 1;
      --most;
    }
    const bool is_one = family.numbers.size() == 1;
    pieces.push_back(family.before + (is_one ? items[0] : "[" + join(items, ",") + "]") +
                     family.behind);
  }
  return folded;
}

std::string counted_text(const std::vector<std::string>& names, const char* unit) {
  const std::vector<Family> families = families_of(names);
  std::size_t count = 0;
  for (const Family& family : families) count += family.only.empty() ? family.numbers.size() : 1;
  const FoldedNames folded = fold(families, kMostShown);
  std::string text = join(folded.pieces, ",");
  if (folded.shown < count) text += " and " + std::to_string(count - folded.shown) + " more";
  if (count > kMostUncounted) text += " (" + std::to_string(count) + unit + ")";
  return text;
}

}  // namespace

std::string fold_host_names(const std::vector<std::string>& names) {
  return join(fold_each(names), ",");
}

std::vector<std::string> fold_each(const std::vector<std::string>& names) {
  return fold(families_of(names), SIZE_MAX).pieces;
}

std::string hosts_text(const std::vector<std::string>& names) {
  return counted_text(names, " hosts");
}

std::string named_hosts_text(const std::vector<std::string>& names) {
  return word_for(names.size(), "host") + " " + counted_text(names, "");
}

}  // namespace hv::launcher
