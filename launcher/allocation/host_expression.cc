// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_expression.h"

#include "launcher/allocation/host_words.h"
#include "launcher/allocation/node_expression.h"

namespace hv::launcher {

HostList parse_host_expression(std::string_view text, const std::string& source) {
  const Place place{source, 0, text};
  HostCollector collector;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = find_comma(text, begin, text.size());
    const HostWord word = parse_host_word(place, begin, end, kMostHosts);
    for (const std::string& name : word.names) {
      HostEntry entry;
      entry.name = name;
      entry.user = word.user;
      entry.slots = word.slots;
      entry.origin = place.origin();
      entry.column = begin;
      collector.add(std::move(entry), place);
    }
    begin = end + 1;
  }
  return collector.take(place);
}

}  // namespace hv::launcher
