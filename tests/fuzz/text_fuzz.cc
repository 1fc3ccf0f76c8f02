// Numbers, times and quantities as users write them, and text made fit for messages and shells.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "src/base/text.h"
#include "src/net/address.h"
#include "src/net/interfaces.h"
#include "src/net/port_range.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

void check_numbers(std::string_view text) {
  if (const auto number = parse_integer(text)) {
    HV_CHECK(parse_integer(std::to_string(*number)) == number, "a number is what it prints as");
    HV_CHECK(text.size() == std::to_string(*number).size() || text.find('0') != text.npos, "exact");
  }
  if (const auto number = parse_number(text)) HV_CHECK(std::isfinite(*number), "finite");
  if (const auto bytes = parse_bytes(text)) HV_CHECK(*bytes >= 0, "bytes are not negative");
  if (const auto seconds = parse_seconds(text))
    HV_CHECK(*seconds >= 0 && *seconds <= 1e9, "a time that nanoseconds can count");
}

void check_words(std::string_view text) {
  const std::string shown = printable(text, 50);
  HV_CHECK(shown.size() <= 50 + 4 + 3, "within its limit");
  HV_CHECK(std::none_of(shown.begin(), shown.end(),
                        [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
           "no control byte");
  HV_CHECK(printable(shown, 1000) == shown, "what is printable stays as it is");
  const std::string quoted = shell_quote(text);
  HV_CHECK(std::count(quoted.begin(), quoted.end(), '\'') % 2 == 0 ||
               quoted.find("\\'") != std::string::npos,
           "every quote is closed");
  HV_CHECK(join(split(text, ','), ",") == text, "what is split can be joined");
  const std::string_view inner = trim(text);
  HV_CHECK(inner == trim(inner), "trimmed is trimmed");
  (void)nearest(text.substr(0, 64), {"--hostfile", "--np", "", std::string(text.substr(0, 8))});
}

void check_address(std::string_view text) {
  const auto address = SocketAddress::parse(text, 22);
  if (!address) return;
  HV_CHECK(text.find('\0') == text.npos, "nothing is hidden behind a zero byte");
  const auto again = SocketAddress::parse(address->ip(), 22);
  const bool has_scope = text.find('%') != text.npos;  // it is told in text(), not in ip()
  HV_CHECK(again && again->ip() == address->ip(), "an address is what it prints as");
  HV_CHECK(has_scope || again->text() == address->text(), "and with its port");
}

void check_network_knobs(std::string_view text) {
  if (const auto range = parse_port_range(text)) {
    HV_CHECK(range->is_any() || (range->first >= 1 && range->count() >= 1), "ports in order");
    const auto again = parse_port_range(range->is_any() ? "" : range->text());
    HV_CHECK(again && again->text() == range->text(), "a range is what it prints as");
  }
  const auto filter = InterfaceFilter::parse(text);
  if (!filter) return;
  const std::vector<InterfaceAddress> all = {{"eth0", "10.1.2.3"},
                                             {"docker0", "172.17.0.1", AddressKind::kInsideHost},
                                             {"eth0", "fe80::1", AddressKind::kLinkLocal}};
  for (const InterfaceAddress& chosen : choose_addresses(all, *filter))
    HV_CHECK(filter->allows(chosen), "only what is allowed is chosen");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::view(data, size);
  check_numbers(text);
  check_words(text);
  check_address(text);
  check_network_knobs(text);
  return 0;
}
