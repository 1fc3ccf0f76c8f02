// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/node_expression.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

const char* const kItemForm = "numbers, ranges and words, such as [1-4,07,a]";
constexpr std::size_t kMostDigits = 18;

std::string padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width - std::min(width, digits.size()), '0') + digits;
}

// What a bracket names at one place: a word, or the numbers from first to last.
struct Item {
  std::string word;  // not empty: it alone
  std::uint64_t first = 0, last = 0;
  std::size_t width = 0;  // at least so many digits

  std::uint64_t count() const { return word.empty() ? last - first + 1 : 1; }
  std::size_t length() const {
    return word.empty() ? std::max(width, std::to_string(last).size()) : word.size();
  }
  void append_to(const std::string& stem, std::vector<std::string>* names) const {
    if (!word.empty()) {
      names->push_back(stem + word);
      return;
    }
    for (std::uint64_t number = first; number <= last; ++number)
      names->push_back(stem + padded(number, width));
  }
};

// A part of a name: one text, or the items of a bracket.
using Part = std::vector<Item>;

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

std::uint64_t number_at(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view text = place.text.substr(begin, end - begin);
  if (!is_digits(text)) mistake(place, begin, "a range has a number on both sides", kItemForm);
  if (text.size() > kMostDigits)
    mistake(place, begin, "this number has more than " + std::to_string(kMostDigits) + " digits",
            kItemForm);
  return static_cast<std::uint64_t>(*parse_integer(text));
}

Item item_at(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view text = place.text.substr(begin, end - begin);
  const std::size_t dash = text.find('-');
  Item item;
  if (dash == std::string_view::npos) {
    if (!is_word(text))
      mistake(place, begin, "'" + printable(text) + "' is nothing that a bracket names", kItemForm);
    item.word = text;
    return item;
  }
  item.first = number_at(place, begin, begin + dash);
  item.last = number_at(place, begin + dash + 1, end);
  if (item.last < item.first)
    mistake(place, begin, "the range " + printable(text) + " ends before it begins", kItemForm);
  // Of numbers that begin with a zero all have as many digits.
  item.width = text[0] == '0' ? dash : 0;
  return item;
}

// begin: behind the opening bracket; end: the closing one.
Part bracket_at(const Place& place, std::size_t begin, std::size_t end) {
  Part part;
  for_each_piece(place.text, ',', begin, end, [&](std::size_t from, std::size_t to) {
    part.push_back(item_at(place, from, to));
  });
  return part;
}

std::vector<Part> parts_of(const Place& place, std::size_t begin, std::size_t end) {
  std::vector<Part> parts;
  for (std::size_t at = begin; at < end;) {
    const std::size_t open = std::min(place.text.substr(0, end).find('[', at), end);
    const std::string_view text = place.text.substr(at, open - at);
    if (const std::size_t stray = text.find(']'); stray != std::string_view::npos)
      mistake(place, at + stray, "']' closes no bracket", kItemForm);
    if (!text.empty()) parts.push_back({Item{std::string(text)}});
    if (open == end) break;
    const std::size_t close = place.text.substr(0, end).find(']', open);
    if (close == std::string_view::npos)
      mistake(place, open, "this bracket is not closed", kItemForm);
    parts.push_back(bracket_at(place, open + 1, close));
    at = close + 1;
  }
  return parts;
}

// Throws before anything is made of parts that stand for too much.
void check_size(const Place& place, std::size_t begin, const std::vector<Part>& parts,
                std::size_t most) {
  std::uint64_t names = 1;
  std::size_t longest = 0;
  for (const Part& part : parts) {
    std::uint64_t items = 0;
    std::size_t length = 0;
    for (const Item& item : part) {
      items = std::min<std::uint64_t>(items + item.count(), most + 1);
      length = std::max(length, item.length());
    }
    longest += length;
    if (items <= most && names * items <= most) {
      names *= items;
      continue;
    }
    mistake(place, begin, "this expression stands for too many hosts",
            "at most " + count_of(most, "more host"));
  }
  if (longest > kMostNameBytes)
    mistake(place, begin,
            "this host name has more than " + std::to_string(kMostNameBytes) + " bytes",
            "the name of a host");
}

}  // namespace

std::vector<std::string> expand_name(const Place& place, std::size_t begin, std::size_t end,
                                     std::size_t most) {
  const std::vector<Part> parts = parts_of(place, begin, end);
  check_size(place, begin, parts, most);
  std::vector<std::string> names{""};
  for (const Part& part : parts) {
    std::vector<std::string> longer;
    for (const std::string& stem : names)
      for (const Item& item : part) item.append_to(stem, &longer);
    names = std::move(longer);
  }
  return names;
}

std::string fold_names(const std::vector<std::string>& names) {
  // Numbers at names' ends, by what stands before them and by their width.
  std::map<std::pair<std::string, std::size_t>, std::set<std::uint64_t>> numbers;
  std::vector<std::string> pieces;
  for (const std::string& name : names) {
    const std::size_t last = name.find_last_of("0123456789");
    const std::size_t before = last == std::string::npos
                                   ? std::string::npos
                                   : name.find_last_not_of("0123456789", last) + 1;
    const std::size_t width = last == std::string::npos ? 0 : last + 1 - before;
    // Slurm knows brackets at a name's end only.
    if (width == 0 || width > kMostDigits || last + 1 < name.size()) {
      pieces.push_back(name);
      continue;
    }
    const bool is_padded = name[before] == '0' && width > 1;
    numbers[{name.substr(0, before), is_padded ? width : 0}].insert(
        static_cast<std::uint64_t>(*parse_integer(name.substr(before, width))));
  }
  for (const auto& [stem, all] : numbers) {
    std::vector<std::string> items;
    for (const NumberRange& range : ranges_of(all)) items.push_back(range.text(stem.second));
    const bool is_one = all.size() == 1;
    pieces.push_back(stem.first + (is_one ? items[0] : "[" + join(items, ",") + "]"));
  }
  return join(pieces, ",");
}

std::string NumberRange::text(std::size_t width) const {
  return padded(first, width) + (first == last ? "" : "-" + padded(last, width));
}

std::vector<NumberRange> ranges_of(const std::set<std::uint64_t>& numbers) {
  std::vector<NumberRange> ranges;
  for (const std::uint64_t number : numbers) {
    if (!ranges.empty() && ranges.back().last + 1 == number)
      ranges.back().last = number;
    else
      ranges.push_back({number, number});
  }
  return ranges;
}

std::size_t find_comma(std::string_view text, std::size_t begin, std::size_t end) {
  bool is_inside = false;
  for (std::size_t at = begin; at < end; ++at) {
    if (text[at] == '[') is_inside = true;
    if (text[at] == ']') is_inside = false;
    if (text[at] == ',' && !is_inside) return at;
  }
  return end;
}

}  // namespace hv::launcher
