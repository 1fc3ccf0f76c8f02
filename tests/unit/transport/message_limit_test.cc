// A control message beyond the limit is refused in words: its size comes from what programs
// enqueue.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "runtime/transport/message_router.h"

namespace hv::runtime {

TEST_CASE("a control message over the limit is refused in words, one at the limit is taken") {
  MessageRouter router(0, 1, [](int, const std::string&) {});
  const std::string largest(Messenger::kMaxMessageBytes, 'x');
  const std::string larger = largest + "x";
  const Status refused = router.send(0, larger.data(), larger.size());
  CHECK(refused.code == StatusCode::kSystem);
  CHECK(refused.message.find("67108865 bytes") != std::string::npos);
  CHECK(router.send(0, largest.data(), largest.size()).ok());
  int from = -1;
  std::string message;
  CHECK(router.receive(&from, &message));
  CHECK(message.size() == largest.size());
  CHECK_FALSE(router.receive(&from, &message));
}

}  // namespace hv::runtime
