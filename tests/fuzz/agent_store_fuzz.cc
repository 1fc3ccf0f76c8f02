// A rank's end of the agent's socket, and an agent that answers with any bytes.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/agent_store.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "src/net/socket.h"
#include "src/rendezvous/messages.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using std::chrono::seconds;

namespace {

const std::string& name() {
  static const std::string made = "@hvrun-store-fuzz-" + std::to_string(::getpid());
  return made;
}

// Says all of it to whoever connects, and nothing more.
void answer(int listener, std::string_view bytes) {
  const UniqueFd rank(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  (void)send_all(rank.get(), bytes.data(), bytes.size(), seconds(5));
  ::shutdown(rank.get(), SHUT_WR);
  // Until the rank has closed its end: what it says must find a reader.
  char ignored[4096];
  while (::recv(rank.get(), ignored, sizeof ignored, 0) > 0) {
  }
}

void use(AgentStore& store) {
  std::string value;
  JobKey key;
  (void)store.job_key(&key);
  (void)store.put("key", "value");
  const Status fenced = store.fence(seconds(5));
  const Status got = store.get(0, "key", &value);
  HV_CHECK(fenced.ok() || !fenced.message.empty(), "in words");
  HV_CHECK(got.ok() || !got.message.empty(), "in words");
  PeerEvent event;
  while (store.next_event(&event)) HV_CHECK(event.reason.size() < 300, "few words");
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  using namespace hv::rendezvous;
  const std::string welcome = encode_frame_of(Welcome{});
  const std::string event = encode_frame_of(Event{1, "ended"});
  const std::string value = encode_frame_of(Value{true, "v"});
  return {welcome + encode_frame_of(FenceDone{1}) + value,
          welcome + event + encode_frame_of(FenceDone{1}) + value + event,
          encode_frame_of(Refused{"another version"}), welcome + encode_frame_of(FenceDone{2}),
          encode_frame_of(Event{0xffffffff, "x"}) + welcome};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static UniqueFd listener;
  if (!listener) HV_CHECK(listen_unix(name(), &listener).ok(), "it listens");
  ::fcntl(listener.get(), F_SETFL, 0);  // the thread below waits in accept
  std::thread agent([bytes = fuzz::view(data, size)] { answer(listener.get(), bytes); });
  {
    std::unique_ptr<AgentStore> store;
    const Status status = AgentStore::join(name(), 0, 0, seconds(5), &store);
    HV_CHECK(status.ok() == (store != nullptr), "a store, or words");
    HV_CHECK(status.ok() || !status.message.empty(), "a store, or words");
    if (store) use(*store);
  }
  agent.join();
  return 0;
}
