// SPDX-License-Identifier: Apache-2.0
#include "src/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace hv {
namespace {

// Length of the UTF-8 sequence at the start of text, 0 if it is none (RFC 3629; overlong forms are
// none).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

// Edits (add, remove or replace a letter, swap neighbours) that make one text the other; `most`
// where it takes that many or more.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= most) return most;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  std::size_t least_before = 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    // Later rows build on this row and, by swaps, on the one before: none can be below both.
    const std::size_t least = *std::min_element(row.begin(), row.end());
    if (std::min(least_before, least) >= most) return most;
    least_before = least;
  }
  return std::min(row[b.size()], most);
}

struct Suffix {
  const char* text;
  double factor;
};

// Splits "500ms" into 500 and its factor; the longest suffix that fits wins.
template <std::size_t N>
std::optional<double> take_suffix(std::string_view* text, const std::array<Suffix, N>& suffixes) {
  const std::size_t letters = text->find_first_not_of("0123456789.");
  const std::string suffix = letters == std::string_view::npos ? "" : lower(text->substr(letters));
  for (const Suffix& candidate : suffixes) {
    if (suffix == candidate.text) {
      *text = text->substr(0, text->size() - suffix.size());
      return candidate.factor;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  std::size_t start = 0;
  for (;;) {
    const std::size_t end = text.find(separator, start);
    pieces.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return pieces;
    start = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const auto* blanks = " \t\r\n";
  const std::size_t start = text.find_first_not_of(blanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(blanks) - start + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string join(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i) result += separator;
    result += pieces[i];
  }
  return result;
}

std::string join_some(const std::vector<std::string>& pieces) {
  constexpr std::size_t kNamed = 8;
  if (pieces.size() <= kNamed) return join(pieces, ", ");
  return join({pieces.begin(), pieces.begin() + kNamed}, ", ") + " and " +
         std::to_string(pieces.size() - kNamed) + " more";
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Suffix, 11> kSuffixes{{{"", 1},
                                                     {"b", 1},
                                                     {"k", 1024},
                                                     {"kb", 1024},
                                                     {"kib", 1024},
                                                     {"m", 1048576},
                                                     {"mb", 1048576},
                                                     {"mib", 1048576},
                                                     {"g", 1073741824},
                                                     {"gb", 1073741824},
                                                     {"gib", 1073741824}}};
  const auto factor = take_suffix(&text, kSuffixes);
  const auto count = parse_integer(text);
  if (!factor || !count || *count < 0 || static_cast<double>(*count) * *factor > 9e18)
    return std::nullopt;
  return *count * static_cast<std::int64_t>(*factor);
}

std::optional<double> parse_seconds(std::string_view text) {
  static constexpr std::array<Suffix, 6> kSuffixes{
      {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}}};
  const auto factor = take_suffix(&text, kSuffixes);
  const auto count = parse_number(text);
  // A bound far beyond any job keeps later arithmetic in nanoseconds from overflowing.
  if (!factor || !count || *count < 0 || *count * *factor > 1e9) return std::nullopt;
  return *count * *factor;
}

std::string errno_text(int errno_value) {
  char buffer[128];
  return strerror_r(errno_value, buffer, sizeof buffer);  // GNU form: returns the text
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  while (!text.empty()) {
    std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009F are control characters as well: some terminals act on them.
    const bool is_c1 = first == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0;
    std::string piece(text.substr(0, length));
    if (length == 0 || first < 0x20 || first == 0x7f || is_c1) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", first);
      piece = escape;
      length = 1;
    }
    if (result.size() + piece.size() > limit) return result + "...";
    result += piece;
    text.remove_prefix(length);
  }
  return result;
}

std::string printable_lines(std::string_view text) {
  std::string result;
  for (;;) {
    const std::size_t newline = text.find('\n');
    result += printable(text.substr(0, newline), SIZE_MAX);
    if (newline == std::string_view::npos) return result;
    result += '\n';
    text.remove_prefix(newline + 1);
  }
}

std::string shell_quote(std::string_view text) {
  const auto* safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(safe) == std::string_view::npos)
    return std::string(text);
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::optional<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_space = c == ' ' || c == '\t' || c == '\n';
    if (!in_word && !is_space) {
      words.emplace_back();
      in_word = true;
    }
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        words.back() += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (is_space) {
      in_word = false;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return std::nullopt;
  return words;
}

std::string hex(const void* bytes, std::size_t size) {
  static const char* digits = "0123456789abcdef";
  const auto* data = static_cast<const unsigned char*>(bytes);
  std::string result;
  result.reserve(2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    result += digits[data[i] >> 4];
    result += digits[data[i] & 15];
  }
  return result;
}

std::string format_bytes(std::uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // What "%.1f" would round up to 1024 is 1.0 of the next unit.
  while (value >= 1023.95 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value == std::floor(value) ? "%.0f %s" : "%.1f %s",
                value, units[unit]);
  return text;
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates, std::size_t most) {
  std::optional<std::string> best;
  const std::size_t usual = std::max<std::size_t>(word.size() > 3 ? 2 : 1, word.size() / 3);
  std::size_t best_distance = std::min(usual, most) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate, best_distance);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string format_ranges(const std::vector<int>& sorted) {
  std::string result;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (!result.empty()) result += ",";
    result += std::to_string(sorted[i]);
    if (last > i) result += "-" + std::to_string(sorted[last]);
    i = last + 1;
  }
  return result;
}

std::string word_for(std::uint64_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return std::string(singular);
  return plural.empty() ? std::string(singular) + "s" : std::string(plural);
}

std::string count_of(std::uint64_t count, std::string_view singular, std::string_view plural) {
  return std::to_string(count) + " " + word_for(count, singular, plural);
}

std::string ranges_of(std::string_view singular, const std::vector<int>& sorted) {
  return word_for(sorted.size(), singular) + " " + format_ranges(sorted);
}

}  // namespace hv
