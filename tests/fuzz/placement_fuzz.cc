// What ranks publish of themselves when they meet: places (first byte 'p') and addresses.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/placement.h"

#include <algorithm>
#include <set>

#include "runtime/transport/tcp/tcp_meeting.h"
#include "src/wire/codec.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// Three numbers a rank, each a signed byte: local rank, local size, cross rank.
void place(fuzz::Input& input) {
  std::vector<RankIdentity> identities;
  while (!input.empty() && identities.size() < 64) {
    RankIdentity& who = identities.emplace_back();
    who.rank = static_cast<int>(identities.size()) - 1;
    who.local_rank = input.number<std::int8_t>();
    who.local_size = input.number<std::int8_t>();
    who.cross_rank = input.number<std::int8_t>();
  }
  std::vector<int> host_of;
  const Status status = hosts_from_contract(identities, &host_of);
  if (!status.ok()) {
    HV_CHECK(status.code == StatusCode::kContract && !status.message.empty(), "in words");
    return;
  }
  HV_CHECK(host_of.size() == identities.size(), "a host for each rank");
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    HV_CHECK(
        std::count(host_of.begin(), host_of.end(), host_of[rank]) == identities[rank].local_size,
        "as many ranks on its host as it was told");
    const Topology topology = make_topology(static_cast<int>(rank), host_of);
    const int index = local_index(topology);
    HV_CHECK(index >= 0 && index < static_cast<int>(topology.local_ranks.size()), "a place there");
  }
}

struct Card {
  std::uint16_t port = 0;
  std::string machine;
  std::string host;
  std::vector<std::string> addresses;
  std::vector<std::uint8_t> kinds;
  std::vector<std::string> interfaces;
  void fields(auto& a) { a(port, machine, host, addresses, kinds, interfaces); }
};

void take_addresses(std::string_view card) {
  MeetingTerms terms;
  TcpMeeting meeting(terms, make_topology(0, {0, 1}));
  for (const int rank : {0, 1, 7}) {
    const Status status = meeting.set_addresses(rank, std::string(card));
    HV_CHECK(status.ok() || !status.message.empty(), "in words");
  }
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  return {"a" + encode(Card{4000,
                            "boot/1",
                            "node1",
                            {"10.0.0.1", "fe80::1", "127.0.0.1"},
                            {0, 2, 3},
                            {"eth0", "eth0", "lo"}}),
          "a" + encode(Card{1, "", "", std::vector<std::string>(17, "10.0.0.1"), {}, {}}),
          std::string("p\x00\x02\x00\x01\x02\x00\x00\x01\x01", 10),
          std::string("p\x00\x02\x00\x00\x02\x01\x01\x02\x00\x01\x02\x01", 13)};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  if (input.byte() == 'p') {
    place(input);
  } else {
    take_addresses(input.rest());
  }
  return 0;
}
