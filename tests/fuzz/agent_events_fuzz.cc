// hvrun's side of a running job, and an agent that sends any bytes.
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/io_context.hpp>

#include "launcher/supervise/events/event_router.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

namespace asio = boost::asio;

// A stream that has all its bytes at once and then ends.
class ScriptedChannel : public AgentChannel {
 public:
  explicit ScriptedChannel(std::string_view bytes) : rest_(bytes) {}
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    const std::size_t size = asio::buffer_copy(buffer, asio::buffer(rest_));
    rest_.erase(0, size);
    co_return size;
  }
  asio::awaitable<bool> write(asio::const_buffer) override { co_return true; }
  void close() override {}
  std::string last_words() const override { return "it ended"; }

 private:
  std::string rest_;
};

// Two hosts: the first has ranks 0 and 1 and speaks, the second has rank 2 and is silent.
class RunningJob {
 public:
  explicit RunningJob(std::string_view bytes)
      : job_(io_.get_executor(), {}), events_(io_.get_executor()), router_(job_, sinks()) {
    LaunchPlan plan;
    for (std::size_t host = 0; host < 2; ++host) {
      HostTarget target;
      target.name = "host" + std::to_string(host);
      plan.hosts.emplace_back().entry = host;
      Host& added = job_.add_host(target);
      added.link =
          std::make_shared<HostLink>(io_.get_executor(), LinkId{added.id, 0},
                                     std::make_unique<ScriptedChannel>(host == 0 ? bytes : ""),
                                     std::chrono::seconds(15), events_);
    }
    for (int rank = 0; rank < 3; ++rank) {
      PlannedRank& planned = plan.ranks.emplace_back();
      planned.identity.rank = rank;
      planned.identity.size = 3;
      planned.host = rank / 2;
    }
    job_.begin_epoch(plan);
    job_.stage.begin_ranks();
    for (Slot& slot : job_.slots) slot.open_streams = 2;
    events_.start([this](JobEvent event) { dispatch(event); }, [] {});
    send_requests();
    speaker().link->start();
  }
  ~RunningJob() {
    for (const Host& host : job_.hosts)
      if (host.link) host.link->close();
    io_.poll();
  }
  void run() {
    const std::shared_ptr<HostLink> link = speaker().link;
    io_.poll();
    HV_CHECK(link->has_ended(), "its stream has ended");
    HV_CHECK(!speaker().phase.can_have_agent(), "lost, or gone in order");
    HV_CHECK(!silent().phase.is_lost() && !job_.slots.of_rank(2).has_ended(),
             "no other host is harmed");
    for (const Slot& slot : job_.slots) {
      HV_CHECK(slot.step_times.is_plausible(), "times that can be");
      HV_CHECK(slot.open_streams >= 0, "each stream ends once");
    }
    if (!job_.policy->failed()) return;
    const FailureCause cause = job_.policy->cause();
    HV_CHECK(cause.exit_code > 0 && cause.exit_code <= 255, "a failure has a code that is one");
    // That host's ranks may name one of another host, which still runs, as lost.
    HV_CHECK(!cause.rank || (*cause.rank >= 0 && *cause.rank < 3), "a rank of the job");
  }

 private:
  static RouterSinks sinks() {
    return {[](const wire::Output& output) {
              HV_CHECK(output.rank < 2, "a rank of that host");
              return true;
            },
            [](const wire::Result&) { return true; },
            [](std::uint32_t) {},
            [](const std::string& text) { HV_CHECK(text.size() < 10000, "few words"); },
            [](const wire::FenceStalled&) {},
            [](const wire::TensorStalled& told) { HV_CHECK(told.by < 2, "a rank of that host"); },
            [](const wire::CallStalled& told) { HV_CHECK(told.by < 2, "a rank of that host"); },
            [] {}};
  }
  // Two of each, so that answers may come.
  void send_requests() {
    const auto send_twice = [&](const auto& request) {
      for (int i = 0; i < 2; ++i) speaker().link->send(request);
    };
    send_twice(wire::Ping{});
    send_twice(wire::SetupRequest{});
    send_twice(wire::InventoryRequest{});
    send_twice(wire::ProbeRequest{});
    send_twice(wire::WiringRequest{});
    send_twice(wire::CheckRequest{});
    send_twice(wire::PairRequest{});
    send_twice(wire::Launch{});
    send_twice(wire::Go{});
    send_twice(wire::Query{1});
    send_twice(wire::StepsRequest{});
    send_twice(wire::StackRequest{});
    send_twice(wire::Silence{});
    send_twice(wire::Stdin{0, false, std::string(4096, 'x')});
  }
  void dispatch(const JobEvent& event) {
    if (const auto* const frame = std::get_if<FrameArrived>(&event)) router_.handle(*frame);
    if (const auto* const end = std::get_if<LinkEnded>(&event)) router_.handle(*end);
  }
  Host& speaker() { return job_.hosts.at(HostId{0}); }
  Host& silent() { return job_.hosts.at(HostId{1}); }

  asio::io_context io_;
  Job job_;
  JobEvents events_;
  EventRouter router_;
};

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  using namespace hv::wire;
  Hello hello;
  hello.facts.hostname = "host0";
  const std::string begin = encode_frame_of(hello) + encode_frame_of(SetupReply{"@a", 1, 2, true}) +
                            encode_frame_of(Ready{}) + encode_frame_of(Started{{10, 11}});
  const std::string run =
      encode_frame_of(Output{0, 1, false, 5, "x\n"}) + encode_frame_of(Ping{7}) +
      encode_frame_of(Pong{1, 2}) + encode_frame_of(FenceIn{0, 1, {{0, "k", "v"}}}) +
      encode_frame_of(QueryReply{1, {0}, {1}, {1}, {60, 0, 60}, {0}, {1}}) +
      encode_frame_of(StepsReply{{{0, {100, 5000, 500, 1500, 100}}}}) +
      encode_frame_of(Result{false, "r"}) + encode_frame_of(Credit{0, 4096}) +
      encode_frame_of(FenceStalled{60, true}) +
      encode_frame_of(CallStalled{0, {61, false, "c", "p"}}) +
      encode_frame_of(MpiBegun{kPmiEpoch}) + encode_frame_of(MpiBegun{kPmixEpoch});
  const std::string end =
      encode_frame_of(Exited{0, false, 1, false, false, 5, false}) +
      encode_frame_of(Exited{1,
                             true,
                             9,
                             false,
                             true,
                             6,
                             true,
                             false,
                             {20, 90, 40, 30, 20},
                             0,
                             {},
                             {},
                             {"its core file is /c", hv::wire::OutOfMemory::kThisRank, "cgroup"}}) +
      encode_frame_of(Output{0, 2, true, 5, ""}) + encode_frame_of(Empty{{"pid 1"}});
  return {
      begin + run + end, begin + encode_frame_of(Problem{"a", "b"}),
      begin + encode_frame_of(RankLost{0, 2, "silent"}) + end,
      encode_frame_of(Note{"words"}) + encode_frame_of(ProbeReply{{{1, {"10.0.0.1"}, ""}}}) + run};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  RunningJob(fuzz::view(data, size)).run();
  return 0;
}
