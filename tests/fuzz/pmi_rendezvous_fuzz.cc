// PMI-1's words of two ranks, and fences that hvrun lets pass.
// SPDX-License-Identifier: Apache-2.0
//
// The input is lines. The first letter of each says whose it is: 'a' and 'b' are ranks, 'c' is none
// of this host, and '-' ends rank 0; anything else lets pass what all have come to.
#include "launcher/agent/mpi/pmi_rendezvous.h"

#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

constexpr std::size_t kMostAnswer = PmiRendezvous::kMostValue + 100;

struct Host {
  PmiRendezvous rendezvous{{3, "(vector,(0,1,3))"}, "space", {{0, 0}, {1, 0}}};
  std::vector<wire::FenceIn> fences;

  void say(std::uint32_t rank, std::string_view line) {
    const auto answer = rendezvous.answer(rank, line);
    if (!answer || answer->empty()) return;
    HV_CHECK(rank < 2, "only this host's ranks are answered");
    HV_CHECK(answer->find('\n') == answer->size() - 1, "one line");
    HV_CHECK(answer->size() <= kMostAnswer, "of bounded length");
  }
  void gather() {
    for (wire::FenceIn& fence : rendezvous.complete()) {
      for (const wire::FencePut& put : fence.puts)
        HV_CHECK(put.key.size() <= PmiRendezvous::kMostKey &&
                     put.value.size() <= PmiRendezvous::kMostValue,
                 "what is put is bounded");
      fences.push_back(std::move(fence));
    }
  }
  void pass() {
    for (const wire::FenceIn& fence : std::exchange(fences, {}))
      (void)rendezvous.pass({fence.epoch, fence.number, fence.puts});
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Host host;
  for (const std::string& line : split(fuzz::view(data, size), '\n')) {
    const std::string_view words = std::string_view(line).substr(line.empty() ? 0 : 1);
    switch (line.empty() ? '\0' : line[0]) {
      case 'a':
      case 'b':
      case 'c':
        host.say(static_cast<std::uint32_t>(line[0] - 'a'), words);
        break;
      case '-':
        host.rendezvous.note_end(0);
        break;
      default:
        host.pass();
    }
    host.gather();
    for (const std::uint32_t rank : {0, 1}) {
      const auto code = host.rendezvous.abort_of(rank);
      HV_CHECK(!code || (*code > 0 && *code < 256), "an exit code that tells a failure");
    }
  }
  return 0;
}
