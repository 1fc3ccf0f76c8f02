// Tests of the codec: round trips, and bad input that must never be trusted. SPDX-License-Identifier: Apache-2.0
#include "src/wire/codec.h"

#include <doctest/doctest.h>

#include <random>

#include "src/wire/messages.h"

namespace {

hv::wire::Launch sample_launch() {
  hv::wire::Launch launch;
  launch.argv = {"program", "with space", std::string("\0\xff\n", 3), ""};
  launch.directory = "/somewhere";
  launch.environment = {"A=1", "B=\xfe"};
  launch.host_variables = {"HOME", "SSH_*"};
  launch.ranks.resize(2);
  launch.ranks[1].rank = 7;
  launch.ranks[1].environment = {{"HVRUN_RANK", "7"}};
  launch.pty = true;
  return launch;
}

}  // namespace

TEST_CASE("a message survives the way there and back byte for byte") {
  const hv::wire::Launch sent = sample_launch();
  hv::wire::Launch received;
  REQUIRE(hv::decode(hv::encode(sent), &received));
  CHECK(received.argv == sent.argv);
  CHECK(received.environment == sent.environment);
  CHECK(received.ranks.size() == 2);
  CHECK(received.ranks[1].environment == sent.ranks[1].environment);
  CHECK(received.pty);
  CHECK(hv::encode(received) == hv::encode(sent));
}

TEST_CASE("a message cut short anywhere, or with a byte too many, is refused") {
  const std::string bytes = hv::encode(sample_launch());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    hv::wire::Launch launch;
    CHECK_FALSE(hv::decode(std::string_view(bytes).substr(0, size), &launch));
  }
  hv::wire::Launch launch;
  CHECK_FALSE(hv::decode(bytes + "x", &launch));
}

TEST_CASE("a length beyond the bytes that are there allocates nothing") {
  hv::wire::Problem problem;
  CHECK_FALSE(hv::decode(std::string("\xff\xff\xff\xff", 4), &problem));
  CHECK(problem.what.empty());
  hv::wire::ProbeReply reply;
  CHECK_FALSE(hv::decode(std::string("\xff\xff\xff\x7f", 4) + std::string(64, 'x'), &reply));
}

TEST_CASE("random bytes never crash the decoder") {
  std::mt19937 random(20261121);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 80, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 7 == 0 ? random() : random() % 4);
    hv::wire::Launch launch;
    hv::wire::Hello hello;
    hv::wire::FenceIn fence;
    (void)hv::decode(bytes, &launch);
    (void)hv::decode(bytes, &hello);
    (void)hv::decode(bytes, &fence);
  }
}

TEST_CASE("a bool that is neither 0 nor 1 is refused") {
  hv::wire::Pause pause;
  CHECK(hv::decode(std::string("\x01", 1), &pause));
  CHECK(pause.stopped);
  CHECK_FALSE(hv::decode(std::string("\x02", 1), &pause));
}
