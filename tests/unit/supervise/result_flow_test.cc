// Tests of launcher/supervise/streams/result_flow: results on their way to the caller's descriptor,
// in jobs over scripted agents.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/result_flow.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;

namespace {

// A pipe whose writing end is a job's --result-fd, which the job takes over.
struct CallersPipe {
  CallersPipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    reading.reset(ends[0]);
    spec.output.result_fd = ends[1];
  }
  // What is there; closed: the other end is.
  std::string read_all(bool* closed) const {
    std::string text(1 << 20, '\0');
    std::size_t size = 0;
    ssize_t got = 0;
    while ((got = ::read(reading.get(), text.data() + size, text.size() - size)) > 0)
      size += static_cast<std::size_t>(got);
    *closed = got == 0;
    text.resize(size);
    return text;
  }

  hv::UniqueFd reading;
  JobSpec spec;
};

// Rank 0 sends these, then ends well.
struct Returning : FakeAgent {
  std::vector<wire::Result> results;
  void on_go() override {
    for (const wire::Result& result : results) send(result);
    finish_all(0);
  }
};

}  // namespace

TEST_CASE("results are written as they are, and the descriptor is closed behind the last") {
  CallersPipe pipe;
  Returning agent;
  agent.results = {{false, std::string("a\0\n", 3)}, {true, "b"}};
  const Outcome outcome = supervise({{"a", &agent}}, "a:1", pipe.spec);
  CHECK(outcome.code == 0);
  CHECK(outcome.out == "");
  CHECK(agent.launch.ranks.at(0).has_result_pipe);
  bool closed = false;
  CHECK(pipe.read_all(&closed) == std::string("a\0\nb", 4));
  CHECK(closed);
}

TEST_CASE("a host whose results were not asked for, are too long or go on after the end is lost") {
  const auto is_lost = [](const JobSpec& spec, const std::vector<wire::Result>& results) {
    Returning agent;
    agent.results = results;
    return contains(supervise({{"a", &agent}}, "a:1", spec).err, "broke the protocol");
  };
  CHECK(is_lost({}, {{false, "x"}}));
  const std::string most(wire::Result::kMostBytes, 'x');
  CHECK_FALSE(is_lost(CallersPipe().spec, {{true, most}}));
  CHECK(is_lost(CallersPipe().spec, {{true, most + 'x'}}));
  CHECK(is_lost(CallersPipe().spec, {{true, ""}, {false, "x"}}));
}

TEST_CASE("results beyond their credit lose the host, while a reader stands still") {
  CallersPipe pipe;
  REQUIRE(::fcntl(*pipe.spec.output.result_fd, F_SETPIPE_SZ, 64 << 10) > 0);
  struct Flooding : Returning {
    hv::UniqueFd* reading = nullptr;
    void on_setup() override {
      if (setup.sweep)
        reading->reset();  // the host has been lost, and nothing holds up the end now
      FakeAgent::on_setup();
    }
  } agent;
  agent.reading = &pipe.reading;
  const std::size_t most = wire::Result::kMostBytes;
  for (std::size_t sent = 0; sent < wire::Result::kFirstCredit + 2 * most; sent += most)
    agent.results.push_back({false, std::string(most, 'x')});
  CHECK(contains(supervise({{"a", &agent}}, "a:1", pipe.spec).err, "broke the protocol"));
  CHECK_FALSE(pipe.reading);
}

TEST_CASE("a reader of results that has gone ends the job with the reason and what to do") {
  CallersPipe pipe;
  pipe.reading.reset();
  struct Waiting : FakeAgent {
    void on_go() override { send(wire::Result{false, "x"}); }
    void on_end() override {
      send(wire::Result{true, ""});
      end_running_ranks();
    }
  } agent;
  const Outcome outcome = supervise({{"a", &agent}}, "a:1", pipe.spec);
  CHECK(outcome.code == static_cast<int>(hv::ErrorKind::kStart));
  CHECK(contains(outcome.err, "write what rank 0 returns to descriptor"));
  CHECK(contains(outcome.err, "(--result-fd): Broken pipe"));
  CHECK(contains(outcome.err, "keep the reading end open"));
  CHECK(agent.ended);
}
