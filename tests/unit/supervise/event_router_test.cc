// Tests of launcher/supervise/events/event_router: every message in every phase of a host, and
// hosts that end or are lost at unusual times.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/event_router.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/unit/supervise/supervised.h"

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

class IdleChannel : public AgentChannel {
 public:
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer) override { co_return 0; }
  asio::awaitable<bool> write(asio::const_buffer) override { co_return true; }
  void close() override {}
  std::string last_words() const override { return ""; }
};

// One host with rank 0, over a link that is not started: the test makes its events.
struct OneHost {
  asio::io_context io;
  std::size_t credit = 100;
  Job job{io.get_executor(), {}};
  JobEvents events{io.get_executor()};
  EventRouter router{
      job,
      {[this](const wire::Output& output) { return output.bytes.size() <= credit; },
       [this](const wire::Result& result) { return result.bytes.size() <= credit; },
       [](std::uint32_t) {}, [](const std::string&) {}, [](const wire::FenceStalled&) {},
       [](const wire::TensorStalled&) {}, [](const wire::CallStalled&) {}, [] {}}};
  Host& host = job.add_host({});

  OneHost() {
    connect(0);
    LaunchPlan plan;
    plan.hosts.resize(1);
    plan.ranks.emplace_back().identity.size = 1;
    job.begin_epoch(plan);
    job.slots.of_rank(0).open_streams = 2;
  }
  void connect(std::uint32_t number) {
    host.link = std::make_shared<HostLink>(io.get_executor(), LinkId{host.id, number},
                                           std::make_unique<IdleChannel>(), 15s, events);
  }
  template <class Message>
  void receive(const Message& message, std::uint32_t link = 0) {
    router.handle(FrameArrived{{host.id, link},
                               {static_cast<std::uint8_t>(Message::kType), encode(message)}});
  }
  void end_link(std::uint32_t link = 0) { router.handle(LinkEnded{{host.id, link}, "it broke"}); }
  void run_ranks() {
    job.stage.begin_ranks();
    receive(wire::Hello{});
    receive(wire::SetupReply{});
    receive(wire::Ready{});
    receive(wire::Started{});
    REQUIRE(phase() == "running");
  }
  std::string phase() const {
    static const std::vector<std::string> names{
        "connecting", "greeted", "set up", "ready", "running", "failed", "ending", "empty", "lost"};
    return names.at(host.phase.value().index());
  }
};

using Step = std::function<void(OneHost&)>;

// Brings the host to each phase.
const std::vector<std::pair<std::string, Step>> kPhases{
    {"connecting", [](OneHost&) {}},
    {"greeted", [](OneHost& one) { one.receive(wire::Hello{}); }},
    {"set up",
     [](OneHost& one) {
       one.receive(wire::Hello{});
       one.receive(wire::SetupReply{});
     }},
    {"ready",
     [](OneHost& one) {
       one.receive(wire::Hello{});
       one.receive(wire::SetupReply{});
       one.receive(wire::Ready{});
     }},
    {"running", [](OneHost& one) { one.run_ranks(); }},
    {"failed",
     [](OneHost& one) {
       one.receive(wire::Problem{"no memory", ""});
     }},
    {"ending",
     [](OneHost& one) {
       one.run_ranks();
       one.host.phase.end();
     }},
    {"empty",
     [](OneHost& one) {
       one.run_ranks();
       one.host.phase.end();
       one.receive(wire::Empty{});
     }},
    {"lost",
     [](OneHost& one) {
       one.run_ranks();
       one.end_link();
     }},
};

template <class Message>
Step receive(const Message& message) {
  return [message](OneHost& one) { one.receive(message); };
}

// The phase of the host after the event, from each phase; "" where it stays.
std::map<std::string, std::string> outcomes(const Step& event) {
  std::map<std::string, std::string> result;
  for (const auto& [name, enter] : kPhases) {
    OneHost one;
    one.job.stage.begin_ranks();
    enter(one);
    REQUIRE(one.phase() == name);
    event(one);
    if (one.phase() != name) result[name] = one.phase();
  }
  return result;
}

using Outcomes = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("a report that is impossible in a host's phase loses the host, a late one does nothing") {
  CHECK(outcomes(receive(wire::Hello{})) == Outcomes{{"connecting", "greeted"},
                                                     {"greeted", "lost"},
                                                     {"set up", "lost"},
                                                     {"ready", "lost"},
                                                     {"running", "lost"}});
  CHECK(outcomes(receive(wire::SetupReply{})) == Outcomes{{"connecting", "lost"},
                                                          {"greeted", "set up"},
                                                          {"set up", "lost"},
                                                          {"ready", "lost"},
                                                          {"running", "lost"}});
  CHECK(outcomes(receive(wire::Ready{})) == Outcomes{{"connecting", "lost"},
                                                     {"greeted", "lost"},
                                                     {"set up", "ready"},
                                                     {"ready", "lost"},
                                                     {"running", "lost"}});
  CHECK(outcomes(receive(wire::Started{})) == Outcomes{{"connecting", "lost"},
                                                       {"greeted", "lost"},
                                                       {"set up", "lost"},
                                                       {"ready", "running"},
                                                       {"running", "lost"}});
}

TEST_CASE("of signals an agent passes on those for the ranks, and SIGTERM of Slurm") {
  for (const std::int32_t number : {SIGUSR1, SIGUSR2, SIGTERM, 0, -1, 1 << 30}) {
    OneHost one;
    one.receive(wire::Signal{number});
    const bool is_for_ranks = number == SIGUSR1 || number == SIGUSR2;
    CHECK(one.host.phase.is_lost() == (!is_for_ranks && number != SIGTERM));
    CHECK(one.job.signals.is_slurm_ending == (number == SIGTERM));
    CHECK(one.job.signals.forwarded == (is_for_ranks ? std::optional(number) : std::nullopt));
  }
}

TEST_CASE("a problem fails a host until its ranks run, and then ends it unrequested") {
  CHECK(outcomes(receive(wire::Problem{"its agent was ended", ""})) ==
        Outcomes{{"connecting", "failed"},
                 {"greeted", "failed"},
                 {"set up", "failed"},
                 {"ready", "failed"},
                 {"running", "ending"}});
}

TEST_CASE(
    "a host becomes empty from every phase but lost, and is lost from every phase but empty") {
  for (const auto& [name, enter] : kPhases) {
    CAPTURE(name);
    OneHost emptied, broken;
    enter(emptied);
    emptied.receive(wire::Empty{});
    CHECK(emptied.phase() == (name == "lost" ? "lost" : "empty"));
    enter(broken);
    broken.end_link();
    CHECK(broken.phase() == (name == "empty" ? "empty" : "lost"));
    CHECK(broken.job.slots.of_rank(0).open_streams == 0);
  }
}

TEST_CASE("no other message changes the phase of a host") {
  for (const Step& event : std::vector<Step>{receive(wire::InventoryReply{}),
                                             receive(wire::ProbeReply{}),
                                             receive(wire::CheckReply{}),
                                             receive(wire::PairReply{}),
                                             receive(wire::WiringReply{}),
                                             receive(wire::Output{0, 1, false, 0, "x"}),
                                             receive(wire::Output{0, 2, true, 0, ""}),
                                             receive(wire::Exited{}),
                                             receive(wire::Credit{0, 1}),
                                             receive(wire::QueryReply{}),
                                             receive(wire::StepsReply{}),
                                             receive(wire::StackReply{}),
                                             receive(wire::SilenceNoted{}),
                                             receive(wire::Note{"x"}),
                                             receive(wire::FenceIn{}),
                                             receive(wire::MpiMissed{wire::kPmiEpoch}),
                                             receive(wire::MpiBegun{wire::kPmiEpoch}),
                                             receive(wire::RankLost{0, 0, "x"}),
                                             receive(wire::FenceStalled{1, false}),
                                             receive(wire::TensorStalled{0, {1, {0}, 0, "w"}}),
                                             receive(wire::CallStalled{0, {1, false, "c", "p"}})})
    CHECK(outcomes(event) == Outcomes{});
}

TEST_CASE("steps of a running rank are kept, those of other ranks or of impossible times are not") {
  OneHost one;
  one.run_ranks();
  one.receive(wire::StepsReply{{{0, {5, 50, 0, 10, 0}}}});
  CHECK(one.job.slots.of_rank(0).step_times.steps == 5);
  wire::Exited exited;
  exited.step_times = {7, 70, 0, 10, 0};
  one.receive(exited);
  one.receive(wire::StepsReply{{{0, {5, 50, 0, 10, 0}}}});
  CHECK(one.job.slots.of_rank(0).step_times.steps == 7);
  for (const wire::RankSteps& each :
       {wire::RankSteps{1, {5, 50, 0, 10, 0}}, wire::RankSteps{0, {5, 50, 51, 0, 1}}}) {
    OneHost other;
    other.run_ranks();
    other.receive(wire::StepsReply{{each}});
    CHECK(other.phase() == "lost");
  }
}

TEST_CASE("ranks that start or end before Go break the protocol") {
  OneHost started;
  started.receive(wire::Hello{});
  started.receive(wire::SetupReply{});
  started.receive(wire::Ready{});
  started.receive(wire::Started{});
  CHECK(started.phase() == "lost");
  OneHost ended;
  ended.receive(wire::Hello{});
  ended.receive(wire::Exited{});
  CHECK(ended.phase() == "lost");
}

TEST_CASE("events of a former link do nothing, and the loss of a second agent ends the sweep") {
  OneHost one;
  one.run_ranks();
  one.end_link();
  REQUIRE(one.host.phase.begin_sweep());
  one.connect(1);
  one.receive(wire::Empty{}, 0);
  one.end_link(0);
  CHECK(one.host.phase.is_sweeping());
  one.receive(wire::Hello{}, 1);
  CHECK(one.host.phase.is_sweeping());
  one.end_link(1);
  CHECK(!one.host.phase.is_sweeping());
  CHECK(one.host.phase.lost()->reason == "it broke");
  one.host.drop_link();
  one.receive(wire::Empty{}, 1);
  one.end_link(1);
  CHECK(one.phase() == "lost");
}

TEST_CASE(
    "a rank has been quiet since its last output, which may come after the report of its end") {
  OneHost one;
  one.run_ranks();
  wire::Output output;
  output.stream = 1;
  output.bytes = "x";
  one.receive(output);
  const TimePoint written = now();
  wire::Exited exited;
  exited.may_hold_text = true;
  one.receive(exited);
  CHECK(one.job.policy->ends().at(0).may_hold_text);
  const Slot& slot = one.job.slots.of_rank(0);
  const Duration quiet = slot.quiet;
  CHECK(quiet > Duration::zero());
  CHECK(quiet <= now() - slot.last_output);
  CHECK(slot.last_output <= written);
  one.receive(wire::Output{0, 2, true, 0, ""});
  CHECK(slot.quiet == quiet);
  one.receive(output);
  CHECK(slot.quiet == Duration::zero());
  one.receive(wire::Output{0, 1, true, 0, ""});
  CHECK(slot.open_streams == 0);
}

TEST_CASE("an unrequested end while ranks run loses the host for the policy, once") {
  for (const bool has_reason : {true, false}) {
    OneHost one;
    one.run_ranks();
    if (has_reason) one.receive(wire::Problem{"the first reason", "advice"});
    one.receive(wire::Problem{"the second reason", ""});
    one.receive(wire::Empty{});
    REQUIRE(one.job.policy->failed());
    CHECK(one.job.policy->cause().host == 0);
    CHECK(one.job.policy->cause().reason ==
          (has_reason ? "the first reason" : "the second reason"));
    CHECK(one.host.phase.unrequested_end()->advice == (has_reason ? "advice" : ""));
  }
}

TEST_CASE("a question is open until its own reply arrives") {
  Question<wire::StackReply> question;
  CHECK(!question.is_open(1));
  question.ask(1);
  CHECK(question.is_open(1));
  CHECK(!question.is_open(2));
  question.ask(2);
  question.answer(wire::StackReply{1, {}});
  CHECK(question.is_open(2));
  question.answer(wire::StackReply{2, {}});
  CHECK(!question.is_open(2));
}

TEST_CASE("an agent that leaves before the ranks start fails the launch at once") {
  struct Leaving : FakeAgent {
    void on_launch() override { send(wire::Empty{}); }
  } a;
  FakeAgent b;
  const TimePoint begun = now();
  const Outcome outcome = supervise({{"a", &a}, {"b", &b}}, "a:1,b:1");
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.err, "its agent was told to end there"));
  CHECK(now() - begun < 10s);
  CHECK(b.ended);
}

TEST_CASE("a second agent that is lost, too, does not delay the end of the job") {
  struct Vanishing : FakeAgent {
    int starts = 0;
    void on_start() override {
      ++starts;
      FakeAgent::on_start();
    }
    void on_setup() override { setup.sweep ? vanish() : FakeAgent::on_setup(); }
    void on_go() override {
      later(10ms, [this] { vanish(); });
    }
  } a;
  const TimePoint begun = now();
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 5);
  CHECK(a.starts == 2);
  CHECK(now() - begun < 2500ms);
}

TEST_CASE("Ctrl-C while hosts are still connecting ends the job and the agents") {
  struct Slow : FakeAgent {
    void on_start() override {
      later(50ms, [] { ::kill(::getpid(), SIGINT); });
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:1");
  CHECK(outcome.code == 130);
  CHECK(a.ended);
}

TEST_CASE("addresses of ranks that no agent could take end the job, with the reason") {
  for (const std::size_t mebibytes : {63, 64}) {
    OneHost one;
    one.run_ranks();
    wire::FenceIn fence;
    for (std::size_t i = 0; i < mebibytes; ++i)
      fence.puts.push_back({0, "key", std::string(1 << 20, 'x')});
    one.receive(fence);
    CHECK(one.phase() == "running");
    CHECK(one.job.stop().has_value() == (mebibytes == 64));
    if (one.job.stop())
      CHECK(one.job.stop()->text ==
            "the ranks have 64.0 MiB of addresses for each other, and an agent takes at most "
            "64 MiB");
  }
}

TEST_CASE("a host that sends more output than its ranks have credit for is lost") {
  OneHost one;
  one.run_ranks();
  wire::Output output;
  output.stream = 1;
  output.bytes.assign(one.credit, 'x');
  one.receive(output);
  CHECK(one.phase() == "running");
  output.bytes += 'x';
  one.receive(output);
  CHECK(one.phase() == "lost");
}

TEST_CASE("the end of the results is the end of a stream, and a refused result loses the host") {
  OneHost one;
  one.run_ranks();
  one.receive(wire::Result{true, std::string(one.credit, 'x')});
  CHECK(one.job.slots.of_rank(0).open_streams == 1);
  one.receive(wire::Result{true, std::string(one.credit + 1, 'x')});
  CHECK(one.phase() == "lost");
}

TEST_CASE("what a rank cannot send twice, and what takes no credit, loses the host") {
  const auto phase_after = [](const std::vector<Step>& steps) {
    OneHost one;
    one.run_ranks();
    for (const Step& step : steps) step(one);
    return one.phase();
  };
  const Step exit = receive(wire::Exited{}), text = receive(wire::Output{0, 1, false, 0, "x"}),
             end = receive(wire::Output{0, 1, true, 0, ""});
  CHECK(phase_after({text, text, end, exit}) == "running");
  CHECK(phase_after({exit, exit}) == "lost");
  CHECK(phase_after({end, end}) == "lost");
  CHECK(phase_after({end, text}) == "lost");
  CHECK(phase_after({receive(wire::Output{0, 1, false, 0, ""})}) == "lost");
  CHECK(phase_after({receive(wire::Result{false, ""})}) == "lost");
  CHECK(phase_after({receive(wire::RankLost{0, 7, "no such rank"})}) == "running");
  CHECK(phase_after({receive(wire::RankLost{1, 0, "by a rank of another host"})}) == "lost");
}

TEST_CASE("the reason of a breach names the message") {
  OneHost one;
  one.run_ranks();
  one.receive(wire::Exited{7});
  REQUIRE(one.host.phase.lost());
  CHECK(one.host.phase.lost()->reason == "its agent broke the protocol (Exited)");
}

TEST_CASE("fences that only one host comes to do not pile up") {
  OneHost one;
  LaunchPlan plan;  // with a second host, which comes to none
  plan.hosts.resize(2);
  plan.hosts[1].entry = 1;
  plan.ranks.resize(2);
  plan.ranks[1].host = 1;
  for (int rank = 0; rank < 2; ++rank) {
    plan.ranks[static_cast<std::size_t>(rank)].identity.rank = rank;
    plan.ranks[static_cast<std::size_t>(rank)].identity.size = 2;
  }
  one.job.add_host({});
  one.job.begin_epoch(plan);
  one.run_ranks();
  for (std::uint32_t epoch = 0; epoch < 64; ++epoch) one.receive(wire::FenceIn{epoch, 1, {}});
  CHECK(one.phase() == "running");
  SUBCASE("one more") { one.receive(wire::FenceIn{64, 1, {}}); }
  SUBCASE("one again") { one.receive(wire::FenceIn{5, 1, {}}); }
  CHECK(one.phase() == "lost");
}
