// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_list.h"

#include <algorithm>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// A piece of the input together with where it stands, for messages.
struct Place {
  std::string source;     // "-H" or the file's name
  std::size_t line = 0;   // 1-based; 0: the source has no lines
  std::string_view text;  // the whole line
};

[[noreturn]] void mistake(const Place& place, std::size_t column, const std::string& what,
                          const std::string& expected) {
  std::string where = place.source;
  if (place.line) where += ":" + std::to_string(place.line);
  where += ":" + std::to_string(column + 1);
  // The caret must stand below its byte also where the line holds tabs or is cut.
  constexpr std::size_t kShown = 120;
  const std::size_t first = column > kShown / 2 ? column - kShown / 2 : 0;
  const std::string before = printable(place.text.substr(first, column - first), 10 * kShown);
  const std::string after =
      printable(place.text.substr(std::min(column, place.text.size()), kShown), 10 * kShown);
  throw Error(ErrorKind::kUsage,
              where + ": " + what + "\n  " + before + after + "\n  " +
                  std::string(before.size(), ' ') + "^",
              "expected " + expected);
}

const char* const kHostForm = "a host name or address, such as node1, user@node1 or [fd00::1]";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == ':' || c == '%';
}

// Cuts "user@name" or "[v6]" out of text[begin, end); a name never begins with '-', so that it can
// never be taken for an option by a remote shell.
HostEntry parse_name(const Place& place, std::size_t begin, std::size_t end, bool allow_colon) {
  HostEntry entry;
  std::string_view text = place.text.substr(begin, end - begin);
  const std::size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    entry.user = text.substr(0, at);
    const bool bad = entry.user.empty() || entry.user[0] == '-' ||
                     std::any_of(entry.user.begin(), entry.user.end(),
                                 [](char c) { return c <= ' ' || c == 0x7f; });
    if (bad) mistake(place, begin, "'" + printable(entry.user) + "' is no user name", "user@host");
    begin += at + 1;
    text.remove_prefix(at + 1);
  }
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    allow_colon = true;
    ++begin;
  }
  if (text.empty()) mistake(place, begin, "a host name is missing", kHostForm);
  if (text.size() > 253) mistake(place, begin, "this host name has more than 253 bytes", kHostForm);
  if (text.front() == '-') mistake(place, begin, "a host name cannot begin with '-'", kHostForm);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_name_character(text[i]) && (allow_colon || text[i] != ':')) continue;
    mistake(place, begin + i, "'" + printable(text.substr(i, 1)) + "' cannot stand in a host name",
            kHostForm);
  }
  entry.name = text;
  entry.origin = place.line ? place.source + ":" + std::to_string(place.line) : place.source;
  return entry;
}

int parse_slots(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view text = place.text.substr(begin, end - begin);
  const auto slots = parse_integer(text);
  const std::string range = "a number of slots from 1 to " + std::to_string(kMostSlotsPerHost);
  if (!slots || *slots < 1 || *slots > kMostSlotsPerHost) {
    mistake(place, begin, "'" + printable(text) + "' is no number of slots", range);
  }
  return static_cast<int>(*slots);
}

// Adds an entry or sums it up with an earlier one of the same host. A bare name that repeats counts
// its lines.
class Collector {
 public:
  void add(HostEntry entry, const Place& place) {
    const auto key = std::pair(entry.user, entry.name);
    const auto [found, is_new] = index_.emplace(key, list_.entries.size());
    if (is_new) {
      if (list_.entries.size() >= kMostHosts) {
        mistake(place, 0, "more than " + std::to_string(kMostHosts) + " hosts", "fewer hosts");
      }
      list_.entries.push_back(std::move(entry));
      return;
    }
    HostEntry& first = list_.entries[found->second];
    const long total = first.slots.value_or(1) + entry.slots.value_or(1);
    if (total > kMostSlotsPerHost) {
      mistake(place, 0, "host '" + first.name + "' has " + std::to_string(total) + " slots in all",
              "at most " + std::to_string(kMostSlotsPerHost));
    }
    first.slots = static_cast<int>(total);
  }
  HostList take(const std::string& source) {
    if (list_.entries.empty()) {
      throw Error(ErrorKind::kUsage, source + " names no host",
                  std::string("expected ") + kHostForm);
    }
    return std::move(list_);
  }

 private:
  HostList list_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

// The colon that separates host and slots, not one inside brackets.
std::size_t find_slots_colon(std::string_view word) {
  const std::size_t bracket = word.rfind(']');
  return word.find(':', bracket == std::string_view::npos ? 0 : bracket);
}

void parse_hostfile_line(const Place& place, Collector* collector) {
  const std::string_view line = place.text.substr(0, place.text.find('#'));
  std::optional<HostEntry> entry;
  for (std::size_t at = 0;;) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    at = end;
    if (!entry) {
      entry = parse_name(place, begin, end, false);
    } else if (word.substr(0, 6) == "slots=") {
      if (entry->slots) mistake(place, begin, "slots is stated twice", "one slots=N a line");
      entry->slots = parse_slots(place, begin + 6, end);
    } else {
      mistake(place, begin, "'" + printable(word) + "' is not understood",
              "slots=N, a comment, or the end of the line");
    }
  }
  if (entry) collector->add(std::move(*entry), place);
}

}  // namespace

HostList parse_host_expression(std::string_view text) {
  const Place place{"-H", 0, text};
  Collector collector;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t colon = find_slots_colon(text.substr(begin, end - begin));
    const std::size_t name_end = colon == std::string_view::npos ? end : begin + colon;
    HostEntry entry = parse_name(place, begin, name_end, false);
    if (name_end < end) entry.slots = parse_slots(place, name_end + 1, end);
    collector.add(std::move(entry), place);
    begin = end + 1;
  }
  return collector.take("-H");
}

HostList parse_hostfile(std::string_view content, const std::string& source) {
  if (content.size() > kMostHostfileBytes) {
    throw Error(ErrorKind::kUsage,
                source + ": a hostfile of " + format_bytes(content.size()) + " is refused",
                "at most " + format_bytes(kMostHostfileBytes));
  }
  Collector collector;
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    parse_hostfile_line({source, ++line_number, content.substr(begin, end - begin)}, &collector);
    begin = end + 1;
  }
  return collector.take(source);
}

}  // namespace hv::launcher
