// A rank that has proven itself and then speaks another language: as good as lost to all others.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "runtime/transport/shm/shm_transport.h"
#include "runtime/transport/transport.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kStranger = 1;

std::string bytes_of(std::uint32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// As the message router cuts messages: its length in front.
std::string framed(const std::string& message) {
  return bytes_of(static_cast<std::uint32_t>(message.size())) + message;
}

// To rank 0 alone: it is rank 0 that has to tell rank 2.
void write_to_first(Fabric& fabric, const std::string& garbage) {
  if (fabric.topology().local_ranks.size() == 1) {
    fabric.data_plane()->channel(0, kControlLane).write(garbage.data(), garbage.size());
    return fabric.progress();
  }
  ShmTransport local(fabric.data_plane()->host().memory(), fabric.topology().local_ranks);
  local.channel(0, kControlLane).write(garbage.data(), garbage.size());
}

void send_garbage(const JobShape& shape, const std::string& garbage, const std::string& words) {
  CAPTURE(name_of(shape));
  CAPTURE(words);
  std::atomic<int> waiting{0}, ended{0};
  std::atomic<TimePoint> written{};
  JobOptions options;
  options.shape = shape;
  options.bare_rank = kStranger;
  options.bare_body = [&](Fabric& fabric) {
    while (waiting < 2) std::this_thread::yield();
    written = now();
    write_to_first(fabric, garbage);
    while (ended < 2) std::this_thread::yield();  // its leaving would end the others' wait, too
    fabric.close(std::chrono::milliseconds(100));
  };
  run_job(options, [&](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    ++waiting;
    const Status status = rank.run(allreduce_request("never", &one, &value, &value));
    const Duration took = now() - written.load();
    const Status later = rank.run(allreduce_request("later", &one, &value, &value));
    ++ended;
    while (ended < 2) std::this_thread::yield();
    for (const Status& told : {status, later}) {
      expect(told.code == StatusCode::kPeerLost, told.message);
      expect(told.message.find("rank 1 " + words) != std::string::npos, told.message);
    }
    expect(took < kBeforeSilence, "told too late");
  });
}

}  // namespace

TEST_CASE("a rank that sends what is no message is lost to all others, with its name and why") {
  const std::uint32_t of_pairs = 0xffffffff;
  const struct {
    std::string bytes, words;
  } cases[] = {
      {std::string(64, '\xff'), "sent a control message of an impossible length"},
      {framed("abc"), "sent a message of a process set that is unknown here"},
      {framed(bytes_of(77) + "garbage"), "sent a message of a process set that is unknown here"},
      {framed(bytes_of(0) + std::string(40, '\x5a')), ""},
      {framed(bytes_of(of_pairs) + bytes_of(0) + std::string(40, '\x5a')), ""},
  };
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 1, 1}})
    for (const auto& one : cases) send_garbage(shape, one.bytes, one.words);
}
