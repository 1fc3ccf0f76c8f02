// Proofs on fresh connections, whose other end says anything: 's' this end serves, else it is the
// client.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/handshake.h"

#include <sys/socket.h>

#include "src/base/unique_fd.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace hv::fuzz {

std::vector<std::string> seeds() {
  Hello hello;
  hello.from = 1;
  hello.use = kUseData;
  const std::string greeting(reinterpret_cast<const char*>(&hello), sizeof hello);
  return {"s" + greeting + std::string(kProofBytes, 'p'), "s" + greeting,
          "c" + std::string(sizeof(ServerAnswer), 'a')};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using std::chrono::seconds;
  fuzz::Input input(fuzz::view(data, size));
  const bool serves = input.byte() == 's';
  const std::string_view said = input.take(4096);
  int fds[2];
  HV_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "a pair");
  const UniqueFd own(fds[0]), peer(fds[1]);
  HV_CHECK(::send(peer.get(), said.data(), said.size(), 0) == static_cast<ssize_t>(said.size()),
           "the peer speaks");
  ::shutdown(peer.get(), SHUT_WR);
  static const JobKey key = random_key();
  Hello expected, hello;
  expected.use = kUseData;
  const Status status = serves
                            ? prove_as_server(own.get(), key, "job", expected, &hello, seconds(5))
                            : prove_as_client(own.get(), key, "job", expected, seconds(5));
  HV_CHECK(!status.ok() && !status.message.empty(), "nobody proves what it does not know");
  return 0;
}
