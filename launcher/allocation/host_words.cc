// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_words.h"

#include <algorithm>

#include "launcher/allocation/node_expression.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '%';
}

bool is_plain(std::string_view text) {
  return !text.empty() && text[0] != '-' && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
  });
}

std::string shown(std::string_view text) { return "'" + printable(text) + "'"; }

std::string user_at(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view user = place.text.substr(begin, end - begin);
  // A comma parts hosts: "a:2,u@b slots=4" names no user "a:2,u".
  if (!is_plain(user) || user.size() > kMostUserBytes || user.find(',') != user.npos)
    mistake(place, begin, shown(user) + " is no user name", "user@host");
  return std::string(user);
}

// An address, or a name: what may stand in it. A name never begins with '-', so that it can never
// be taken for an option by a remote shell.
void check_characters(const Place& place, std::size_t begin, std::string_view text,
                      bool is_address) {
  if (text.empty()) mistake(place, begin, "a host name is missing", kHostForm);
  if (text.front() == '-') mistake(place, begin, "a host name cannot begin with '-'", kHostForm);
  bool is_inside = false;  // of brackets, which others look at
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!is_address && (c == '[' || c == ']')) {
      is_inside = c == '[';
      continue;
    }
    if (is_inside || is_name_character(c) || (is_address && c == ':')) continue;
    mistake(place, begin + i, shown(text.substr(i, 1)) + " cannot stand in a host name", kHostForm);
  }
}

// Seven colons, or two that stand together: no host has so many numbers of slots.
bool looks_like_ipv6(std::string_view text) {
  return text.find('[') == std::string_view::npos &&
         (text.find("::") != std::string_view::npos ||
          std::count(text.begin(), text.end(), ':') == 7);
}

// "[fd00::1]": brackets round an address, not a node expression.
bool is_bracketed_address(std::string_view text) {
  return text.size() > 2 && text.front() == '[' && text.find(']') == text.size() - 1 &&
         text.find(':') != std::string_view::npos;
}

std::vector<std::string> names_at(const Place& place, std::size_t begin, std::size_t end,
                                  std::size_t most) {
  const std::string_view text = place.text.substr(begin, end - begin);
  if (!is_bracketed_address(text)) {
    check_characters(place, begin, text, false);
    return expand_name(place, begin, end, most);
  }
  const std::string_view address = text.substr(1, text.size() - 2);
  if (address.size() > kMostNameBytes)
    mistake(place, begin, "this address has more than 253 bytes", kHostForm);
  check_characters(place, begin + 1, address, true);
  return {std::string(address)};
}

// The colon that separates host and slots, not one inside brackets.
std::size_t find_slots_colon(std::string_view word) {
  const std::size_t bracket = word.rfind(']');
  return word.find(':', bracket == std::string_view::npos ? 0 : bracket);
}

std::uint16_t parse_port(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view text = place.text.substr(begin, end - begin);
  const auto port = parse_integer(text);
  if (!port || *port < 1 || *port > 65535)
    mistake(place, begin, shown(text) + " is no port", "a port from 1 to 65535");
  return static_cast<std::uint16_t>(*port);
}

std::string parse_address(const Place& place, std::size_t begin, std::size_t end) {
  if (is_bracketed_address(place.text.substr(begin, end - begin))) {
    ++begin;
    --end;
  }
  const std::string_view text = place.text.substr(begin, end - begin);
  if (text.empty() || text.size() > kMostNameBytes)
    mistake(place, begin, "an address has 1 to 253 bytes", "address=10.0.0.1");
  check_characters(place, begin, text, true);
  return std::string(text);
}

std::string parse_plain(const Place& place, std::size_t begin, std::size_t end,
                        std::size_t most_bytes, const char* expected) {
  const std::string_view text = place.text.substr(begin, end - begin);
  if (!is_plain(text) || text.size() > most_bytes)
    mistake(place, begin, shown(text) + " is not understood", expected);
  return std::string(text);
}

// Every setting of a line: what it is called, whether the entry has it, how its value gets there.
struct Setting {
  std::string name;
  bool (*is_stated)(const HostEntry&);
  void (*parse)(const Place&, std::size_t begin, std::size_t end, HostEntry*);
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all{
      {"slots", [](const HostEntry& e) { return e.slots.has_value(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->slots = parse_slots(p, b, n);
       }},
      {"max-slots", [](const HostEntry& e) { return e.max_slots.has_value(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->max_slots = parse_slots(p, b, n, 1);
       }},
      {"user", [](const HostEntry& e) { return !e.user.empty(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->user = user_at(p, b, n);
       }},
      {"port", [](const HostEntry& e) { return e.port != 0; },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->port = parse_port(p, b, n);
       }},
      {"identity", [](const HostEntry& e) { return !e.identity.empty(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->identity =
             parse_plain(p, b, n, kMostPathBytes, "a private key's file: identity=~/.ssh/id_lab");
       }},
      {"gpus", [](const HostEntry& e) { return !e.gpus.empty(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->gpus = parse_gpus(p, b, n);
       }},
      {"address", [](const HostEntry& e) { return !e.address.empty(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->address = parse_address(p, b, n);
       }},
      {"ifname", [](const HostEntry& e) { return !e.interfaces.empty(); },
       [](const Place& p, std::size_t b, std::size_t n, HostEntry* e) {
         e->interfaces =
             parse_plain(p, b, n, kMostInterfacesBytes, "network interfaces: ifname=eth1");
       }},
  };
  return all;
}

[[noreturn]] void unknown_setting(const Place& place, std::size_t begin, std::string_view word) {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) names.push_back(setting.name);
  const std::size_t equals = word.find('=');
  const auto meant = nearest(word.substr(0, equals), names);
  std::string expected;
  if (meant && equals != std::string_view::npos) {
    expected = *meant + "=; also ";
    std::erase(names, *meant);
  }
  expected += join(names, "=, ") + "=, a comment, or the end of the line";
  mistake(place, begin, shown(word) + " is not understood", expected);
}

}  // namespace

bool is_host_setting(std::string_view name) {
  return std::any_of(settings().begin(), settings().end(),
                     [name](const Setting& setting) { return setting.name == name; });
}

HostWord parse_host_word(const Place& place, std::size_t begin, std::size_t end, std::size_t most) {
  HostWord word;
  const std::size_t at = place.text.substr(begin, end - begin).rfind('@');
  if (at != std::string_view::npos) {
    word.user = user_at(place, begin, begin + at);
    begin += at + 1;
  }
  const std::string_view text = place.text.substr(begin, end - begin);
  const std::size_t colon = find_slots_colon(text);
  if (colon != std::string_view::npos) {
    word.slots_at = begin + colon + 1;
    if (looks_like_ipv6(text))
      mistake(place, begin, "an address of IPv6 stands in brackets", "[fd00::1] or [fd00::1]:4");
    const std::string_view port = text.substr(colon + 1, text.find(':', colon + 1) - (colon + 1));
    if (port.size() + 1 < text.size() - colon && parse_integer(port))
      mistake(place, word.slots_at, shown(text.substr(colon + 1)) + " is no number of slots",
              "HOST:SLOTS; a port stands in a hostfile (" + printable(text.substr(0, colon)) +
                  " port=" + std::string(port) + " slots=1) or in --ssh-port");
    word.slots = parse_slots(place, word.slots_at, end);
    end = begin + colon;
  }
  word.names = names_at(place, begin, end, most);
  return word;
}

int parse_slots(const Place& place, std::size_t begin, std::size_t end, int least) {
  const std::string_view text = place.text.substr(begin, end - begin);
  const auto slots = parse_integer(text);
  if (!slots || *slots < least || *slots > kMostSlotsPerHost)
    mistake(place, begin, shown(text) + " is no number of slots",
            "a number of slots from " + std::to_string(least) + " to " +
                std::to_string(kMostSlotsPerHost));
  return static_cast<int>(*slots);
}

std::vector<std::string> parse_gpus(const Place& place, std::size_t begin, std::size_t end) {
  std::vector<std::string> gpus;
  for_each_piece(place.text, ',', begin, end, [&](std::size_t at, std::size_t to) {
    const std::string_view text = place.text.substr(at, to - at);
    const auto index = parse_integer(text);
    const std::string_view kind = text.substr(0, 4);
    const bool is_uuid =
        (kind == "GPU-" || kind == "MIG-") && is_plain(text) && text.size() <= kMostUuidBytes;
    if (!is_uuid && (!index || *index < 0 || *index >= static_cast<std::int64_t>(kMostGpus)))
      mistake(place, at, shown(text) + " is no GPU",
              "indices in PCI order or UUIDs, such as gpus=0,2 or gpus=GPU-5a1e...");
    if (std::find(gpus.begin(), gpus.end(), text) != gpus.end())
      mistake(place, at, "GPU " + shown(text) + " is named twice", "each GPU once");
    if (gpus.size() == kMostGpus)
      mistake(place, at, "this is one GPU too many", "at most " + std::to_string(kMostGpus));
    gpus.emplace_back(text);
  });
  return gpus;
}

void parse_host_setting(const Place& place, std::size_t begin, std::size_t end, HostEntry* entry) {
  auto [name, value] = split_setting(place, begin, end);
  std::replace(name.begin(), name.end(), '_', '-');
  const auto found = std::find_if(settings().begin(), settings().end(),
                                  [&name](const Setting& each) { return each.name == name; });
  if (found == settings().end() || !value)
    unknown_setting(place, begin, place.text.substr(begin, end - begin));
  if (found->is_stated(*entry))
    mistake(place, begin, name + " is stated twice", "one " + name + "= a line");
  found->parse(place, *value, end, entry);
  if (entry->slots && entry->max_slots && *entry->max_slots < *entry->slots)
    mistake(place, begin, "max-slots is less than slots", "slots=4 max-slots=8");
}

std::vector<WordRange> words_of_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<WordRange> words;
  for (std::size_t at = 0;;) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) return words;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back({begin, at});
  }
}

std::vector<WordRange> join_settings(std::string_view line, const std::vector<WordRange>& words,
                                     std::size_t first) {
  std::vector<WordRange> settings;
  for (std::size_t i = first; i < words.size(); ++i) {
    const bool is_more =
        i > first && (line[words[i].begin] == '=' || line[words[i - 1].end - 1] == '=');
    if (is_more)
      settings.back().end = words[i].end;
    else
      settings.push_back(words[i]);
  }
  return settings;
}

SettingWord split_setting(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view word = place.text.substr(begin, end - begin);
  const std::size_t equals = word.find('=');
  SettingWord setting{std::string(trim(word.substr(0, equals))), std::nullopt};
  if (equals == std::string_view::npos) return setting;
  const std::size_t value = word.find_first_not_of(" \t\r", equals + 1);
  setting.value = value == std::string_view::npos ? end : begin + value;
  return setting;
}

}  // namespace hv::launcher
