// Every message between hvrun and agent (first byte 0), between agent and rank (1), and between
// agent and hvrun-pmix (2); the second its type.
// SPDX-License-Identifier: Apache-2.0
//
// What decodes must encode to the same bytes: then no two inputs mean the same, and nothing is read
// by chance.
#include "src/rendezvous/messages.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"
#include "src/wire/mpi_wiring.h"
#include "src/wire/stacks.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

template <class Message>
void check(std::uint8_t type, std::string_view payload) {
  if (type != static_cast<std::uint8_t>(Message::kType)) return;
  Message message;
  if (decode(payload, &message)) HV_CHECK(encode(message) == payload, "one encoding");
  Reader reader(payload);
  message.fields(reader);
  HV_CHECK(!reader.complete() || reader.ok(), "complete means well formed");
}

template <class... Messages>
void check_each(std::uint8_t type, std::string_view payload) {
  (check<Messages>(type, payload), ...);
}

template <class Message>
std::string seed(char family, const Message& message) {
  return std::string{family, static_cast<char>(Message::kType)} + encode(message);
}

wire::Exited killed_rank() {
  wire::Exited exited{1, true, 9, false, true, 1, true, false, {20, 90, 40, 30, 20}};
  exited.found = {"its core file is /c", wire::OutOfMemory::kThisRank, "cgroup"};
  return exited;
}

const wire::MpiWorld kWorld{"space", {"a", "b"}, {0, 1}, {0, 0}};

std::vector<std::string> short_seeds() {
  return {seed(0, wire::Ping{1}),
          seed(1, rendezvous::Silence{true}),
          seed(1, rendezvous::Stalled{{61, {1, 2}, 0, "w"}}),
          seed(0, wire::StepsReply{{{0, {100, 5000, 500, 1500, 100}}}}),
          seed(0, wire::StackRequest{1, {0, 1}, 5}),
          seed(0, wire::StackReply{1, {{0, 12, "p", "s", "python", "native", "problem"}}}),
          seed(0, wire::TensorStalled{0, {61, {1, 2}, 0, "w"}}),
          seed(1, rendezvous::Waits{1, {61, true, "c", "p"}}),
          seed(0, wire::CallStalled{1, {61, true, "c", "p"}})};
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  wire::Hello hello;
  hello.facts = {"node1",
                 "x86_64",
                 8,
                 {{"0000:3b:00.0", "H200", "GPU-5a1e", 1, 0, "pci0", true}},
                 {"10.0.0.1", "fd00::1"},
                 1 << 30,
                 {{0, {0, 1}}},
                 {{"mlx5_0", 0, "pci0", {1}}},
                 true,
                 "0,1",
                 true};
  wire::InventoryReply inventory;
  inventory.inventory = {"build", "550", {{"0000:3b:00.0", "GPU-5a1e", "H200", 1, 80}},
                         {},      "x",   ""};
  inventory.inventory.gpus[0].mig = {{"MIG-5a1e", "1g", 7, 0, 10, true}};
  inventory.inventory.gpus[0].links = {"0000:8a:00.0"};
  inventory.inventory.topology = {1, 2, 48, 96, {"2 x L3"}};
  wire::SetupRequest setup;
  setup.job_id = "0123";
  wire::Launch launch;
  launch.programs = {{{"python3", "train.py"}, "/work", {"C=1"}}};
  launch.environment = {"A=1", "B="};
  launch.ranks = {{0, {{"RANK", "0"}}, wire::StdinMode::kForwarded, 0, {0, 1}}, {1, {}, {}, 0, {}}};
  launch.pmi = {2, "(vector,(0,1,2))"};
  std::vector<std::string> all = {
      seed(0, hello),
      seed(0, wire::InventoryRequest{20, "program"}),
      seed(0, inventory),
      seed(0, setup),
      seed(0, launch),
      seed(0, wire::WiringRequest{kWorld, 20, "/lib", "program"}),
      seed(0, wire::WiringReply{false, "problem", "hint"}),
      seed(0, wire::SetupReply{"@agent", 29500, 4000, true}),
      seed(0, wire::ProbeRequest{{{1, 4000, {"10.0.0.1", "fd00::1"}}}, 2}),
      seed(0, wire::ProbeReply{{{1, {"10.0.0.1"}, "refused"}}}),
      seed(0, wire::Problem{"what", "hint"}),
      seed(0, wire::Started{{12, 13}}),
      seed(0, wire::Output{1, 2, false, 123456789, "text\n"}),
      seed(0, killed_rank()),
      seed(0, wire::QueryReply{1, {0, 1}, {1}, {0}, {60}, {0}, {1}}),
      seed(0, wire::FenceIn{0, 1, {{0, "key", "value"}}}),
      seed(0, wire::FenceOut{0, 1, {{0, "key", "value"}, {1, "", ""}}}),
      seed(0, wire::RankLost{0, 1, "silent"}),
      seed(0, wire::FenceStalled{60, true}),
      seed(0, wire::Empty{{"pid 12 (x)"}}),
      seed(1, rendezvous::Join{}),
      seed(1, rendezvous::Welcome{}),
      seed(1, rendezvous::Put{"key", "value"}),
      seed(1, rendezvous::Value{true, "value"}),
      seed(1, rendezvous::Event{1, "killed"}),
      seed(1, rendezvous::Steps{{20, 90, 40, 30, 20}}),
      seed(2, wire::PmixJob{kWorld, 1, "/tmp/folder"}),
      seed(2, wire::PmixReady{"", "", {{0, {{"PMIX_RANK", "0"}}}}, {{"A", "1"}}}),
      seed(0, wire::MpiMissed{wire::kPmiEpoch}),
      seed(2, wire::PmixFence{1, "bytes"})};
  for (std::string& each : short_seeds()) all.push_back(std::move(each));
  return all;
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::uint8_t family = input.byte() % 3;
  const std::uint8_t type = input.byte();
  const std::string_view payload = input.rest();
  if (family == 0) {
    using namespace hv::wire;
    check_each<Hello, InventoryRequest, InventoryReply, SetupRequest, SetupReply, ProbeRequest,
               ProbeReply, Launch, Ready, Problem, Go, Started, Output, Result, Credit, Exited,
               Signal, WindowSize, Pause, Stdin, End, Empty, Query, QueryReply, StepsRequest,
               GraceAfterSignal, StepsReply, FenceIn, FenceOut, RankLost, RankDied, Ping, Pong,
               Note, FenceStalled, Silence, SilenceNoted, WiringRequest, WiringReply, MpiMissed,
               MpiBegun, StackRequest, StackReply, TensorStalled, CallStalled>(type, payload);
  } else if (family == 2) {
    using namespace hv::wire;
    check_each<PmixJob, PmixReady, PmixClient, PmixFence>(type, payload);
  } else {
    using namespace hv::rendezvous;
    check_each<Join, Welcome, Refused, Put, Fence, FenceDone, Get, Value, Lost, Goodbye, Event,
               Silence, Steps, Stalled, Waits>(type, payload);
  }
  return 0;
}
