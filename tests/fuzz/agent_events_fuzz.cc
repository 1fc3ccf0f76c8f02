// hvrun's side of a running job, and an agent that sends any bytes.
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/io_context.hpp>

#include "launcher/supervise/event_router.h"
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
      : job_(io_.get_executor(), {}), router_(job_, sinks()) {
    for (int rank = 0; rank < 3; ++rank) {
      PlannedRank planned;
      planned.identity.rank = rank;
      planned.identity.size = 3;
      planned.host = rank / 2;
      job_.plan.ranks.push_back(planned);
    }
    job_.plan.hosts.resize(2);
    job_.hosts.resize(2);
    job_.ranks.resize(3, {0, false, 2});
    job_.policy.emplace(3);
    job_.fences.emplace(2);
    for (std::size_t host = 0; host < 2; ++host) {
      job_.hosts[host].target.name = "host" + std::to_string(host);
      job_.hosts[host].ranks = host == 0 ? std::vector<int>{0, 1} : std::vector<int>{2};
      job_.hosts[host].link =
          std::make_shared<HostLink>(io_.get_executor(), static_cast<int>(host),
                                     std::make_unique<ScriptedChannel>(host == 0 ? bytes : ""),
                                     std::chrono::seconds(15), router_);
    }
    job_.hosts[0].link->start();
  }
  ~RunningJob() {
    for (HostState& host : job_.hosts) host.link->close();
    io_.poll();
  }
  void run() {
    io_.poll();
    HV_CHECK(job_.hosts[0].link->ended(), "its stream has ended");
    HV_CHECK(job_.hosts[0].lost || job_.hosts[0].empty, "lost, or gone in order");
    HV_CHECK(!job_.hosts[1].lost && !job_.ranks[2].ended, "nobody else is harmed");
    for (const RankState& rank : job_.ranks)
      HV_CHECK(rank.step_times.is_plausible(), "times that can be");
    if (!job_.policy->failed()) return;
    const Verdict verdict = job_.policy->verdict();
    HV_CHECK(verdict.exit_code > 0 && verdict.exit_code <= 255, "a failure has a code that is one");
    // That host's ranks may name one of another host, which still runs, as lost.
    HV_CHECK(!verdict.rank || (*verdict.rank >= 0 && *verdict.rank < 3), "a rank of the job");
  }

 private:
  static RouterSinks sinks() {
    return {[](const wire::Output& output) { HV_CHECK(output.rank < 2, "a rank of that host"); },
            [](std::uint32_t) {},
            [](const std::string& text) { HV_CHECK(text.size() < 10000, "few words"); },
            [](const wire::FenceStalled&) {},
            [](const wire::TensorStalled& told) { HV_CHECK(told.by < 2, "a rank of that host"); },
            [] {}};
  }

  asio::io_context io_;
  Job job_;
  EventRouter router_;
};

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  using namespace hv::wire;
  Hello hello;
  hello.facts.hostname = "host0";
  const std::string begin = encode_frame_of(hello) + encode_frame_of(SetUp{"@a", 1, 2, true}) +
                            encode_frame_of(Ready{}) + encode_frame_of(Started{{10, 11}});
  const std::string run =
      encode_frame_of(Output{0, 1, false, 5, "x\n"}) + encode_frame_of(Ping{7}) +
      encode_frame_of(Pong{1, 2}) + encode_frame_of(FenceIn{0, 1, {{0, "k", "v"}}}) +
      encode_frame_of(QueryReply{1, {0}, {1}, {1}, {60, 0, 60}, {0}, {1}}) +
      encode_frame_of(Credit{0, 4096}) + encode_frame_of(FenceStalled{60, true}) +
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
