// Tests of the talk with an ssh-agent that answers well, badly or not.
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <thread>

#include "launcher/spawn/ssh/ssh_agent.h"
#include "src/base/unique_fd.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

std::string talk_word(std::uint32_t value) {
  std::string text(4, '\0');
  for (int i = 0; i < 4; ++i)
    text[static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  return text;
}
std::string talk_string(const std::string& text) {
  return talk_word(static_cast<std::uint32_t>(text.size())) + text;
}
std::string message_of(const std::string& body) { return talk_string(body); }

std::string one_key_answer() {
  const std::string blob = talk_string("ssh-ed25519") + talk_string(std::string(32, 'k'));
  return message_of(std::string(1, 12) + talk_word(1) + talk_string(blob) + talk_string("ada@lab"));
}

// An agent for one talk: takes the question, gives its answer in pieces of so many bytes, hangs up.
class OneTalkAgent {
 public:
  OneTalkAgent(const TemporaryFolder& folder, std::string answer, std::size_t piece = 1 << 20)
      : path_(folder / "agent"), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    thread_ = std::thread([this, answer = std::move(answer), piece] { talk(answer, piece); });
  }
  ~OneTalkAgent() {
    thread_.join();
    CHECK(question_ == std::string({0, 0, 0, 1, 11}));
  }
  const std::string& path() const { return path_; }

 private:
  void talk(const std::string& answer, std::size_t piece) {
    const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
    char byte;
    while (question_.size() < 5 && ::recv(peer.get(), &byte, 1, 0) == 1) question_ += byte;
    for (std::size_t at = 0; at < answer.size(); at += piece) {
      const std::size_t size = std::min(piece, answer.size() - at);
      if (::send(peer.get(), answer.data() + at, size, MSG_NOSIGNAL) < 0) return;
    }
  }

  const std::string path_;
  UniqueFd listener_;
  std::string question_;
  std::thread thread_;
};

AgentKeys ask(const std::string& path) {
  asio::io_context io;
  return run(io, ask_ssh_agent(path));
}

}  // namespace

TEST_CASE("an ssh-agent's keys are read, also when its answer comes byte by byte") {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{1} << 20}) {
    const TemporaryFolder folder;
    const OneTalkAgent agent(folder, one_key_answer(), piece);
    const AgentKeys found = ask(agent.path());
    CHECK(found.trouble == "");
    REQUIRE(found.keys.size() == 1);
    CHECK(found.keys[0].type == "ssh-ed25519");
    CHECK(found.keys[0].comment == "ada@lab");
  }
}

TEST_CASE("an ssh-agent without keys is no trouble") {
  const TemporaryFolder folder;
  const OneTalkAgent agent(folder, message_of(std::string(1, 12) + talk_word(0)));
  const AgentKeys found = ask(agent.path());
  CHECK(found.keys.empty());
  CHECK(found.trouble == "");
}

TEST_CASE("an ssh-agent that refuses, breaks off or talks nonsense is told as such") {
  const std::string good = one_key_answer();
  const std::pair<const char*, std::string> cases[] = {
      {"hangs up", ""},
      {"hangs up in the length", std::string(2, '\0')},
      {"hangs up in the answer", good.substr(0, good.size() - 1)},
      {"refuses (SSH_AGENT_FAILURE)", message_of(std::string(1, 5))},
      {"an answer without end", talk_word(0xffffffff) + std::string(100, 'x')},
      {"more keys than bytes", message_of(std::string(1, 12) + talk_word(2) + talk_string("a"))},
      {"nothing", message_of("")},
  };
  for (const auto& [what, answer] : cases) {
    CAPTURE(what);
    const TemporaryFolder folder;
    const OneTalkAgent agent(folder, answer);
    const AgentKeys found = ask(agent.path());
    CHECK(found.keys.empty());
    CHECK(found.trouble == "gives no answer that makes sense");
  }
}

TEST_CASE("an ssh-agent that is not there is told with its path") {
  const TemporaryFolder folder;
  CHECK(ask(folder / "nobody").trouble == "cannot be reached at " + folder / "nobody");
  CHECK(contains(ask("/" + std::string(200, 'x')).trouble, "cannot be reached"));
}
