// Tests of src/wire/messages.
// SPDX-License-Identifier: Apache-2.0
//
// The expected bytes are written out here by other means than the codec: a field that is left out,
// added, moved or made wider changes the protocol and must be seen.
#include "src/wire/messages.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "src/wire/frame.h"
#include "src/wire/mpi_wiring.h"
#include "src/wire/stacks.h"

using namespace hv::wire;

namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i) result += static_cast<char>(value >> 8 * i & 0xff);
  return result;
}
std::string u8(std::uint64_t value) { return number(value, 1); }
std::string u32(std::uint64_t value) { return number(value, 4); }
std::string u64(std::uint64_t value) { return number(value, 8); }
std::string text(const std::string& value) { return u32(value.size()) + value; }

constexpr std::uint64_t kHalf = 0x3fe0000000000000, kTwo = 0x4000000000000000;  // as doubles

struct Sample {
  Type type;
  std::string encoded;
  std::string expected;
  // Decodes bytes as this message and encodes it again; false: refused.
  bool (*again)(std::string_view bytes, std::string* encoded);
};

template <class Message>
Sample sample(const Message& message, const std::string& expected) {
  return {Message::kType, hv::encode(message), expected,
          [](std::string_view bytes, std::string* encoded) {
            Message read;
            if (!hv::decode(bytes, &read)) return false;
            *encoded = hv::encode(read);
            return true;
          }};
}

std::vector<Sample> samples_of_starting() {
  hv::JobKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i + 1);
  const Facts facts{"node1",
                    "x86_64",
                    8,
                    {{"0000:3b:00.0", "H200", "GPU-1", 2, -1, "p", true}},
                    {"10.0.0.1"},
                    1ull << 40,
                    {{1, {3}, 5}},
                    {{"mlx5_0", 0, "q", {1}}},
                    true,
                    "0,1",
                    true,
                    {"eth0"}};
  const StallTimes stalls{0.5, 2, 0.5};
  const std::string facts_bytes =
      text("node1") + text("x86_64") + u32(8) + u32(1) + text("0000:3b:00.0") + text("H200") +
      text("GPU-1") + u32(2) + u32(~0u) + text("p") + u8(1) + u32(1) + text("10.0.0.1") +
      u64(1ull << 40) + u32(1) + u32(1) + u32(1) + u32(3) + u32(5) + u32(1) + text("mlx5_0") +
      u32(0) + text("q") + u32(1) + u32(1) + u8(1) + text("0,1") + u8(1) + u32(1) + text("eth0");
  return {
      sample(Hello{1, "build", {12, 5}, {11, 4}, "0::/", -2, facts},
             u32(1) + text("build") + u32(12) + u64(5) + u32(11) + u64(4) + text("0::/") +
                 u64(-2ull) + facts_bytes),
      sample(SetupRequest{"job", key, 3, 0.5, 2, 2, stalls, true, -1, false, "9-9", true,
                          LostAgent{{12, 5}, {11, 4}, "c", true}, true},
             text("job") + std::string(reinterpret_cast<const char*>(key.data()), key.size()) +
                 u32(3) + u64(kHalf) + u64(kTwo) + u64(kTwo) + u64(kHalf) + u64(kTwo) + u64(kHalf) +
                 u8(1) + u32(-1ull) + u8(0) + text("9-9") + u8(1) + u8(1) + u32(12) + u64(5) +
                 u32(11) + u64(4) + text("c") + u8(1) + u8(1)),
      sample(SetupReply{"@agent", 29500, 4000, true, true, 7},
             text("@agent") + u32(29500) + u32(4000) + u8(1) + u8(1) + u32(7)),
      sample(
          ProbeRequest{{{1, 4000, {"10.0.0.1", "fd00::1"}}}, 0.5},
          u32(1) + u32(1) + u32(4000) + u32(2) + text("10.0.0.1") + text("fd00::1") + u64(kHalf)),
      sample(ProbeReply{{{1, {"10.0.0.1"}, ""}, {2, {}, "refused"}}},
             u32(2) + u32(1) + u32(1) + text("10.0.0.1") + text("") + u32(2) + u32(0) +
                 text("refused")),
      sample(Launch{{{{"a", "\xff\n"}, "/d", {"B=2"}, "/r"}},
                    {"A=1"},
                    {"SSH_*"},
                    {{7, {{"RANK", "7"}}, StdinMode::kForwarded, 1, {3}, true}},
                    true,
                    {132, 43},
                    65536,
                    PmiWorld{9, "m"},
                    077},
             u32(1) + u32(2) + text("a") + text("\xff\n") + text("/d") + u32(1) + text("B=2") +
                 text("/r") + u32(1) + text("A=1") + u32(1) + text("SSH_*") + u32(1) + u32(7) +
                 u32(1) + text("RANK") + text("7") + u8(1) + u32(1) + u32(1) + u32(3) + u8(1) +
                 u8(1) + u32(132) + u32(43) + u32(65536) + u8(1) + u32(9) + text("m") + u32(077)),
      sample(Ready{}, ""),
      sample(Problem{"what", "hint", true}, text("what") + text("hint") + u8(1)),
      sample(Go{}, ""),
      sample(Started{{12, 4194304}}, u32(2) + u32(12) + u32(4194304)),
  };
}

std::vector<Sample> samples_of_inventories() {
  InventoryGpu gpu{"0000:3b:00.0", "GPU-1", "H200", 2, 1ull << 40, true};
  gpu.mig = {{"MIG-1", "1g", 7, 3, 5, false}};
  gpu.links = {"s"};
  gpu.health = {true, false, true, false, 6, 7};
  gpu.node = -1;
  gpu.near_cores = "0-3";
  gpu.use = {5, 97, {{12, 9, "p"}}};
  gpu.compute_mode = "default";
  gpu.has_persistence = true;
  gpu.pcie = {8, 16, 1, 4};
  gpu.peers = {{"0000:3c:00.0", "r"}};
  gpu.slowdown = "heat";
  gpu.xids = {{79, 60, "x"}};
  const Inventory inventory{"build", "550", {gpu}, {1, 2, 3, 4, {"L3"}}, "no", "none",
                            "13.0",  0.5,   "log"};
  const std::string gpu_bytes =
      text("0000:3b:00.0") + text("GPU-1") + text("H200") + u32(2) + u64(1ull << 40) + u8(1) +
      u32(1) + text("MIG-1") + text("1g") + u32(7) + u32(3) + u64(5) + u8(0) + u8(0) + u8(0) +
      u32(0) + u32(1) + text("s") + u8(1) + u8(0) + u8(1) + u8(0) + u64(6) + u64(7) + u32(~0u) +
      text("0-3") + u8(1) + u64(5) + u8(1) + u32(97) + u32(1) + u32(12) + u64(9) + text("p") +
      text("default") + u8(1) + u8(1) + u8(0) + u32(8) + u32(16) + u32(1) + u32(4) + u32(1) +
      text("0000:3c:00.0") + text("r") + text("heat") + u32(1) + u32(79) + u64(60) + text("x");
  return {
      sample(InventoryRequest{0.5, " (K)", "ELF"}, u64(kHalf) + text(" (K)") + text("ELF")),
      sample(InventoryReply{true, "why", inventory},
             u8(1) + text("why") + text("build") + text("550") + u32(1) + gpu_bytes + u32(1) +
                 u32(2) + u32(3) + u32(4) + u32(1) + text("L3") + text("no") + text("none") +
                 text("13.0") + u64(kHalf) + text("log")),
  };
}

std::vector<Sample> samples_of_wiring() {
  return {
      sample(WiringRequest{{"s", {"a", "b"}, {0, 1, 1}, {0, 0, 1}}, 0.5, "/lib", "ELF", 1},
             text("s") + u32(2) + text("a") + text("b") + u32(3) + u32(0) + u32(1) + u32(1) +
                 u32(3) + u32(0) + u32(0) + u32(1) + u64(kHalf) + text("/lib") + text("ELF") +
                 u32(1)),
      sample(WiringReply{true, "why", "mend"}, u8(1) + text("why") + text("mend")),
      sample(MpiMissed{2}, u32(2)),
      sample(MpiBegun{2}, u32(2)),
      sample(CallStalled{1, {2, true, "c", "p"}},
             u32(1) + u64(kTwo) + u8(1) + text("c") + text("p")),
  };
}

std::vector<Sample> samples_of_running() {
  return {
      sample(Output{1, 2, true, INT64_MAX, "a\n"},
             u32(1) + u8(2) + u8(1) + u64(INT64_MAX) + text("a\n")),
      sample(Result{true, "\x80"}, u8(1) + text("\x80")),
      sample(Credit{1, UINT32_MAX, true}, u32(1) + u32(UINT32_MAX) + u8(1)),
      sample(Exited{1,
                    true,
                    9,
                    false,
                    true,
                    5,
                    true,
                    false,
                    {1, 2, 3, 4, 5},
                    6,
                    MpiEnd::kNotBegun,
                    MpiEnd::kNotFinalized,
                    {"core", OutOfMemory::kThisRank, "log"},
                    {SigtermUse::kIgnored, 0.5},
                    true},
             u32(1) + u8(1) + u32(9) + u8(0) + u8(1) + u64(5) + u8(1) + u8(0) + u64(1) + u64(2) +
                 u64(3) + u64(4) + u64(5) + u64(6) + u8(1) + u8(2) + text("core") + u8(3) +
                 text("log") + u8(2) + u64(kHalf) + u8(1)),
      sample(Signal{-1}, u32(-1ull)),
      sample(WindowSize{132, 43}, u32(132) + u32(43)),
      sample(Pause{true}, u8(1)),
      sample(Stdin{2, true, "in"}, u32(2) + u8(1) + text("in")),
      sample(End{0.5, true}, u64(kHalf) + "\x01"),
      sample(Empty{{"pid 12 (x)"}, {"pid 13 (y)"}},
             u32(1) + text("pid 12 (x)") + u32(1) + text("pid 13 (y)")),
      sample(Query{3}, u32(3)),
      sample(QueryReply{3, {0, 1}, {2}, {4}, {0.5, 0, 2}, {5}, {}},
             u32(3) + u32(2) + u32(0) + u32(1) + u32(1) + u32(2) + u32(1) + u32(4) + u64(kHalf) +
                 u64(0) + u64(kTwo) + u32(1) + u32(5) + u32(0)),
      sample(StepsRequest{}, ""),
      sample(GraceAfterSignal{0.5}, u64(kHalf)),
      sample(StepsReply{{{2, {5, 9, 1, 3, 4}}}},
             u32(1) + u32(2) + u64(5) + u64(9) + u64(1) + u64(3) + u64(4)),
      sample(FenceIn{1, 2, {{3, "k", "v"}}},
             u32(1) + u32(2) + u32(1) + u32(3) + text("k") + text("v")),
      sample(FenceOut{1, 2, {{3, "k", ""}}},
             u32(1) + u32(2) + u32(1) + u32(3) + text("k") + text("")),
      sample(RankLost{1, 2, "silent"}, u32(1) + u32(2) + text("silent")),
      sample(RankDied{2, "killed"}, u32(2) + text("killed")),
      sample(Ping{INT64_MIN}, u64(1ull << 63)),
      sample(Pong{1, 2}, u64(1) + u64(2)),
      sample(Note{"text", true, true}, text("text") + u8(1) + u8(1)),
      sample(FenceStalled{2, true, Meeting::kMpi}, u64(kTwo) + u8(1) + u8(2)),
      sample(Silence{2, true}, u32(2) + u8(1)),
      sample(SilenceNoted{2}, u32(2)),
      sample(StackRequest{1, {2, 3}, 0.5}, u32(1) + u32(2) + u32(2) + u32(3) + u64(kHalf)),
      sample(StackReply{1, {{2, 12, "n", "s", "p", "c", "why"}}},
             u32(1) + u32(1) + u32(2) + u32(12) + text("n") + text("s") + text("p") + text("c") +
                 text("why")),
      sample(TensorStalled{1, {2, {3}, 5, "w"}},
             u32(1) + u64(kTwo) + u32(1) + u32(3) + u32(5) + text("w")),
  };
}

std::vector<Sample> samples() {
  std::vector<Sample> result = samples_of_starting();
  for (const Sample& each : samples_of_inventories()) result.push_back(each);
  for (const Sample& each : samples_of_wiring()) result.push_back(each);
  for (const Sample& each : samples_of_running()) result.push_back(each);
  return result;
}

}  // namespace

TEST_CASE("each type has its own number, and each a message") {
  const std::set<int> numbers{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 20,
                              21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 40, 41, 42, 43,
                              44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58};
  std::set<int> seen;
  for (const Sample& each : samples()) seen.insert(static_cast<int>(each.type));
  CHECK(seen == numbers);
  CHECK(samples().size() == numbers.size());
  CHECK(static_cast<int>(Type::kHello) == 1);
  CHECK(static_cast<int>(Type::kStarted) == 10);
  CHECK(static_cast<int>(Type::kResult) == 31);
  CHECK(static_cast<int>(Type::kNote) == 46);
}

TEST_CASE("each message has the fields, order and widths that are written here") {
  for (const Sample& each : samples()) {
    CAPTURE(static_cast<int>(each.type));
    CHECK(each.encoded == each.expected);
  }
}

TEST_CASE("each message survives the way there and back") {
  for (const Sample& each : samples()) {
    CAPTURE(static_cast<int>(each.type));
    std::string again;
    REQUIRE(each.again(each.expected, &again));
    CHECK(again == each.expected);
  }
}

TEST_CASE("each message cut short anywhere, or with a byte too many, is refused") {
  for (const Sample& each : samples()) {
    CAPTURE(static_cast<int>(each.type));
    std::string again;
    for (std::size_t size = 0; size < each.expected.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(each.again(std::string_view(each.expected).substr(0, size), &again));
    }
    CHECK_FALSE(each.again(each.expected + '\0', &again));
    CHECK_FALSE(each.again(each.expected + each.expected + '\1', &again));
  }
}

TEST_CASE("a flipped bit in a message is refused or read as what it now says, never as before") {
  for (const Sample& each : samples()) {
    CAPTURE(static_cast<int>(each.type));
    for (std::size_t bit = 0; bit < 8 * each.expected.size(); ++bit) {
      std::string damaged = each.expected, again;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      if (each.again(damaged, &again)) CHECK(again == damaged);
    }
  }
}

TEST_CASE("random bytes are refused or mean one message only") {
  std::mt19937 random(20261121);
  const std::vector<Sample> all = samples();
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 80, '\0'), again;
    for (char& byte : bytes) byte = static_cast<char>(random() % 7 == 0 ? random() : random() % 4);
    for (const Sample& each : all) {
      if (each.again(bytes, &again)) CHECK(again == bytes);
    }
  }
}

TEST_CASE("a message of one type read as another is refused where their shapes differ") {
  std::string again;
  for (const Sample& sent : samples()) {
    for (const Sample& read : samples()) {
      if (sent.type == read.type || !read.again(sent.expected, &again)) continue;
      CAPTURE(static_cast<int>(sent.type));
      CAPTURE(static_cast<int>(read.type));
      CHECK(again == sent.expected);
    }
  }
}

TEST_CASE("a count beyond the bytes that are there makes no room for it") {
  const std::string many = u32(UINT32_MAX) + std::string(64, '\0');
  Started started;
  CHECK_FALSE(hv::decode(many, &started));
  CHECK(started.pids.empty());
  ProbeReply reply;
  CHECK_FALSE(hv::decode(many, &reply));
  CHECK(reply.results.empty());
  Problem problem;
  CHECK_FALSE(hv::decode(many, &problem));
  CHECK(problem.what.empty());
}

TEST_CASE("what a message says by default is what its reader relies on") {
  CHECK(Hello().protocol == kAgentProtocol);
  CHECK(SetupRequest().lost_after_s == 15);
  CHECK_FALSE(SetupRequest().sweep);
  CHECK(Launch().credit_bytes == 1 << 20);
  CHECK_FALSE(Launch().pty);
  CHECK(LaunchRank().stdin_mode == StdinMode::kNull);
  CHECK_FALSE(LaunchRank().has_result_pipe);
  CHECK_FALSE(Credit().is_for_results);
  CHECK(Output().stream == 1);
  CHECK_FALSE(Output().end);
  CHECK(InventoryRequest().timeout_s == 20);
  CHECK(MigDevice().may_open);
}

TEST_CASE("an output as large as a rank's first credit passes the agents' limit whole") {
  Output output;
  output.bytes.assign(Launch().credit_bytes, 'x');
  hv::FrameParser parser(kMaxAgentPayload);
  REQUIRE(parser.feed(hv::encode_frame_of(output)));
  hv::Frame frame;
  REQUIRE(parser.next(&frame));
  CHECK(frame.type == static_cast<std::uint8_t>(Type::kOutput));
  Output received;
  REQUIRE(hv::decode(frame.payload, &received));
  CHECK(received.bytes == output.bytes);
}

TEST_CASE("a header that claims more than the agents' limit is refused before its bytes come") {
  hv::FrameParser at(kMaxAgentPayload), beyond(kMaxAgentPayload);
  CHECK(at.feed(u32(kMaxAgentPayload + 1) + u8(1)));
  CHECK_FALSE(beyond.feed(u32(kMaxAgentPayload + 2) + u8(1)));
}

TEST_CASE("every message has a name of its own, and what is none is told by its number") {
  std::set<std::string> names;
  for (int type = 0; type < 256; ++type) names.insert(name_of(static_cast<std::uint8_t>(type)));
  CHECK(names.size() == 256);
  CHECK(names.count("message type 0") == 1);
  CHECK(names.count("message type " + std::to_string(static_cast<int>(Type::kCallStalled) + 1)) ==
        1);
  for (const auto& [first, last] :
       {std::pair(Type::kHello, Type::kPairReply), std::pair(Type::kOutput, Type::kResult),
        std::pair(Type::kFenceIn, Type::kGraceAfterSignal)})
    for (int type = static_cast<int>(first); type <= static_cast<int>(last); ++type)
      CHECK(name_of(static_cast<std::uint8_t>(type)).find(' ') == std::string::npos);
  CHECK(name_of(static_cast<std::uint8_t>(Type::kQueryReply)) == "QueryReply");
}
