// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/alike.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace hv::launcher {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

template <class Is>
std::size_t run_of(std::string_view text, std::size_t from, const Is& is) {
  std::size_t end = from;
  while (end < text.size() && is(text[end])) ++end;
  return end - from;
}

// What begins at one place of a line, as length; 0: nothing of that kind does.

std::size_t host_at(std::string_view line, std::size_t at, const std::string& host) {
  if (host.empty() || line.compare(at, host.size(), host) != 0) return 0;
  const std::size_t end = at + host.size();
  const bool begins = at == 0 || !is_word(line[at - 1]);
  return begins && (end == line.size() || !is_word(line[end])) ? host.size() : 0;
}

// 0x7f10a4000b20
std::size_t pointer_at(std::string_view line, std::size_t at) {
  if (line.compare(at, 2, "0x") != 0 || (at > 0 && is_word(line[at - 1]))) return 0;
  const std::size_t digits = run_of(line, at + 2, is_hex);
  return digits >= 6 ? 2 + digits : 0;
}

// Groups of digits with one of those marks between them: 12:34:56.789, 2026-11-27, 10.0.0.7:29500.
struct Groups {
  std::size_t length = 0;
  std::string marks{};
};

Groups groups_at(std::string_view line, std::size_t at) {
  if (!is_digit(line[at]) || (at > 0 && (is_digit(line[at - 1]) || line[at - 1] == '.'))) return {};
  constexpr std::size_t kMostGroups = 8;  // 2026-11-27 12:34:56,789
  Groups found;
  for (std::size_t end = at;;) {
    end += run_of(line, end, is_digit);
    found.length = end - at;
    if (end + 1 >= line.size() || found.marks.size() + 1 == kMostGroups) return found;
    const bool goes_on = std::string_view(":.-,TZ/").find(line[end]) != std::string_view::npos;
    if (!goes_on || !is_digit(line[end + 1])) return found;
    found.marks += line[end];
    ++end;
  }
}

bool is_address_or_time(const std::string& marks) {
  const auto count = [&](char mark) { return std::count(marks.begin(), marks.end(), mark); };
  return count(':') >= 2 || count('.') == 3 || count('-') == 2 || count('/') == 2;
}

std::size_t own_number_at(std::string_view line, std::size_t at, std::uint64_t number) {
  if (at > 0 && is_digit(line[at - 1])) return 0;
  const std::string digits = std::to_string(number);
  if (line.compare(at, digits.size(), digits) != 0) return 0;
  const std::size_t end = at + digits.size();
  return end == line.size() || !is_digit(line[end]) ? digits.size() : 0;
}

// The same kind of a speaker's own stands here in both: past it.
bool pass_own(std::string_view one, std::size_t* p, const Speaker& by_one, std::string_view other,
              std::size_t* q, const Speaker& by_other) {
  const auto pass = [&](std::size_t length, std::size_t other_length) {
    if (length == 0 || other_length == 0) return false;
    *p += length;
    *q += other_length;
    return true;
  };
  if (pass(host_at(one, *p, by_one.host), host_at(other, *q, by_other.host))) return true;
  if (pass(pointer_at(one, *p), pointer_at(other, *q))) return true;
  if (!is_digit(one[*p]) || !is_digit(other[*q])) return false;
  const Groups groups = groups_at(one, *p), other_groups = groups_at(other, *q);
  if (groups.marks == other_groups.marks && is_address_or_time(groups.marks))
    return pass(groups.length, other_groups.length);
  const auto rank_of = [](const Speaker& by) { return static_cast<std::uint64_t>(by.rank); };
  if (pass(own_number_at(one, *p, rank_of(by_one)), own_number_at(other, *q, rank_of(by_other))))
    return true;
  return by_one.pid != 0 && by_other.pid != 0 &&
         pass(own_number_at(one, *p, by_one.pid), own_number_at(other, *q, by_other.pid));
}

}  // namespace

bool are_alike(std::string_view one, const Speaker& by_one, std::string_view other,
               const Speaker& by_other) {
  if (one == other) return true;
  std::size_t p = 0, q = 0;
  while (p < one.size() && q < other.size()) {
    if (pass_own(one, &p, by_one, other, &q, by_other)) continue;
    if (one[p] != other[q]) return false;
    ++p;
    ++q;
  }
  return p == one.size() && q == other.size();
}

bool are_alike(const std::vector<std::string>& one, const Speaker& by_one,
               const std::vector<std::string>& other, const Speaker& by_other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](const std::string& line, const std::string& other_line) {
                      return are_alike(line, by_one, other_line, by_other);
                    });
}

}  // namespace hv::launcher
