// The job's key lies in no memory that a core dump would hold.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wire/key_search.h"

#include <sodium.h>

#include "src/wire/frame.h"
#include "src/wire/messages.h"

using namespace hv;
using namespace hv::tests;

TEST_CASE("a job's key lies in memory that is not dumped") {
  const JobKey key = random_key();
  const auto address = reinterpret_cast<std::size_t>(key.data());
  bool found = false;
  for (const Mapping& mapping : mappings_of(::getpid())) {
    if (address < mapping.begin || address >= mapping.end) continue;
    found = true;
    CHECK_FALSE(mapping.is_dumped);
  }
  CHECK(found);
  CHECK(dumped_copies(::getpid(), key).empty());
}

TEST_CASE("the search finds a copy in ordinary memory, until it is wiped") {
  const JobKey key = random_key();
  std::string copy(reinterpret_cast<const char*>(key.data()), key.size());
  CHECK(dumped_copies(::getpid(), key).size() == 1);
  wipe(&copy);
  CHECK(dumped_copies(::getpid(), key).empty());
}

TEST_CASE("copies of a job's key are keys of their own") {
  JobKey key = random_key();
  JobKey copy = key;
  CHECK(std::memcmp(copy.data(), key.data(), key.size()) == 0);
  copy.fill(3);
  CHECK(std::memcmp(copy.data(), key.data(), key.size()) != 0);
  key = copy;
  CHECK(key[31] == 3);
  CHECK(JobKey()[0] == 0);
}

TEST_CASE("a message with the job's key that was sent and parsed leaves no copy of it") {
  wire::SetupRequest setup;
  setup.key = random_key();
  setup.job_id = "job";
  wire::SetupRequest received;
  {
    FrameParser parser(1 << 20);
    std::string frame = encode_frame_of(setup);
    // In pieces and with others around it, so that the parser's buffer grows and moves.
    const std::string other = encode_frame(99, std::string(5000, 'x'));
    std::string bytes = other;
    append_secret(&bytes, frame);
    wipe(&frame);
    append_secret(&bytes, other);
    Frame taken;
    for (std::size_t at = 0; at < bytes.size(); at += 700) {
      REQUIRE(parser.feed(std::string_view(bytes).substr(at, 700)));
      while (parser.next(&taken)) {
        if (taken.type != static_cast<std::uint8_t>(wire::Type::kSetupRequest)) continue;
        REQUIRE(decode(taken.payload, &received));
        wipe(&taken.payload);
        parser.wipe_taken();
      }
    }
    wipe(&bytes);
  }
  // By bytes: memcmp leaves what it compares in vector registers.
  CHECK(::sodium_memcmp(received.key.data(), setup.key.data(), setup.key.size()) == 0);
  const auto copies = dumped_copies(::getpid(), setup.key);
  CAPTURE(copies.empty() ? "" : copies[0]);
  CHECK(copies.empty());
}
