// The gate for agents that srun starts: who has the key and is awaited comes in, nobody else.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/agent_gate.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "src/net/socket.h"
#include "src/process/birth.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/sealed_stream.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

constexpr auto kLong = std::chrono::seconds(10);

// A gate that awaits some nodes.
struct World {
  asio::io_context io;
  std::set<std::string> awaited{"node1", "node2"};
  std::map<std::string, std::unique_ptr<AgentChannel>> arrived;
  AgentGate gate{io.get_executor(),
                 {},
                 {[this](const std::string& node) { return awaited.count(node) > 0; },
                  [this](const std::string& node, std::unique_ptr<AgentChannel> channel) {
                    awaited.erase(node);
                    arrived[node] = std::move(channel);
                  }}};

  std::uint16_t port() const {
    const std::string& address = gate.addresses().at(0);
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  // Runs what stands for an agent beside the gate, to its end.
  void beside(const std::function<void()>& agent) {
    std::atomic<bool> done{false};
    std::thread thread([&] {
      agent();
      done = true;
    });
    io.restart();
    while (!done) io.run_for(std::chrono::milliseconds(1));
    thread.join();
    io.run_for(std::chrono::milliseconds(20));
  }
};

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd socket;
  const auto address = *SocketAddress::parse("127.0.0.1", port);
  REQUIRE(start_connect(address, &socket).ok());
  pollfd wait{socket.get(), POLLOUT, 0};
  REQUIRE(::poll(&wait, 1, 10000) == 1);
  REQUIRE(finish_connect(socket.get(), address).ok());
  return socket;
}

bool say(int socket, const std::string& bytes) {
  return hv::send_all(socket, bytes.data(), bytes.size(), kLong).ok();
}

// Nothing: the gate has hung up before.
std::optional<std::string> hear(int socket, std::size_t size) {
  std::string bytes(size, '\0');
  if (!hv::read_exactly(socket, bytes.data(), size, kLong).ok()) return std::nullopt;
  return bytes;
}

struct Agent {
  UniqueFd socket;
  std::optional<ControlKeys> keys;  // it has been let in, as far as it knows
};

Agent come_in(std::uint16_t port, const std::string& node, const JobKey& key) {
  Agent agent{connect_to(port), std::nullopt};
  const AgentGreeting greeting{node, random_nonce()};
  say(agent.socket.get(), encode_greeting(greeting));
  const auto answer = hear(agent.socket.get(), kAnswerBytes);
  const auto hvrun = answer ? check_answer(key, greeting, *answer) : std::nullopt;
  if (!hvrun || !say(agent.socket.get(), hvrun->proof)) return agent;
  agent.keys = control_keys(key, greeting.nonce, hvrun->nonce);
  return agent;
}

}  // namespace

TEST_CASE("an agent that has the key comes in, and both say what nobody else can read") {
  World world;
  Agent agent;
  world.beside([&] { agent = come_in(world.port(), "node2", world.gate.key()); });
  REQUIRE(agent.keys);
  REQUIRE(world.arrived.count("node2") == 1);
  AgentChannel& channel = *world.arrived["node2"];
  const std::string words(200000, 'w');
  std::string sealed, heard;
  Sealer(agent.keys->to_hvrun).seal(words, &sealed);
  CHECK(sealed.find("wwww") == std::string::npos);
  std::thread sender([&] { say(agent.socket.get(), sealed); });
  CHECK((run(world.io, trial::read_exactly(channel, words.size())) == words));
  sender.join();
  CHECK(run(world.io, trial::write_all(channel, "answer")));
  Opener opener(agent.keys->to_agent);
  while (heard.size() < 6) {
    const auto byte = hear(agent.socket.get(), 1);
    REQUIRE(byte);
    REQUIRE(opener.open(*byte, &heard));
  }
  CHECK(heard == "answer");
  agent.socket.reset();
  CHECK(run(world.io, trial::read_exactly(channel, 1)).empty());
}

TEST_CASE("a change on the way ends the channel, and nothing of it is handed on") {
  World world;
  Agent agent;
  world.beside([&] { agent = come_in(world.port(), "node1", world.gate.key()); });
  REQUIRE(world.arrived.count("node1") == 1);
  std::string sealed;
  Sealer(agent.keys->to_hvrun).seal("words", &sealed);
  sealed[sealed.size() - 20] ^= 1;
  say(agent.socket.get(), sealed);
  CHECK(run(world.io, trial::read_exactly(*world.arrived["node1"], 5)).empty());
  CHECK(world.arrived["node1"]->last_words().find("changed on its way") != std::string::npos);
}

TEST_CASE("strangers are shut out, whatever they say") {
  World world;
  const std::string greeting = encode_greeting({"node1", random_nonce()});
  world.beside([&] {
    CHECK_FALSE(
        come_in(world.port(), "node1", random_key()).keys);  // knows the gate is not its own
    CHECK_FALSE(come_in(world.port(), "node9", world.gate.key()).keys);  // awaited by nobody
    const UniqueFd noise = connect_to(world.port());
    say(noise.get(), std::string(kGreetingBytes, 'x'));
    CHECK_FALSE(hear(noise.get(), 1));
    const UniqueFd liar = connect_to(world.port());
    say(liar.get(), greeting);
    CHECK(hear(liar.get(), kAnswerBytes));
    say(liar.get(), std::string(kProofBytes, 'x'));
    CHECK_FALSE(hear(liar.get(), 1));
    connect_to(world.port()).reset();  // leaves at once
  });
  CHECK(world.arrived.empty());
  Agent agent;
  world.beside([&] { agent = come_in(world.port(), "node1", world.gate.key()); });
  CHECK(world.arrived.count("node1") == 1);
}

TEST_CASE("a name is let in once") {
  World world;
  world.beside([&] {
    const Agent first = come_in(world.port(), "node1", world.gate.key());
    CHECK(first.keys);
    // The gate has it: it is not awaited any more, and gets no answer.
    for (;;) {
      const Agent second = come_in(world.port(), "node1", world.gate.key());
      if (!second.keys) break;
    }
  });
  CHECK(world.arrived.size() == 1);
}

TEST_CASE("those who say nothing hold up nobody") {
  World world;
  Agent agent;
  std::vector<UniqueFd> silent;
  world.beside([&] {
    for (int i = 0; i < 50; ++i) silent.push_back(connect_to(world.port()));
    agent = come_in(world.port(), "node1", world.gate.key());
  });
  CHECK(world.arrived.count("node1") == 1);
}

TEST_CASE("where too many say nothing the oldest has to go, and an agent comes in") {
  raise_open_file_limit();
  World world;
  Agent agent;
  std::vector<UniqueFd> silent;
  int hung_up = 0;
  world.beside([&] {
    for (std::size_t i = 0; i < AgentGate::kMostGuests + 10; ++i)
      silent.push_back(connect_to(world.port()));
    agent = come_in(world.port(), "node1", world.gate.key());
    pollfd wait{silent[0].get(), POLLIN, 0};
    hung_up = ::poll(&wait, 1, 5000);
  });
  CHECK(hung_up == 1);
  CHECK(world.arrived.count("node1") == 1);
}
