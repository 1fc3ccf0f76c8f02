// A stand-in for hvrun: starts the real hvrun-agent over a socket pair (or pipes) and speaks frames
// with it.
// SPDX-License-Identifier: Apache-2.0
//
// Every wait has a deadline and says what it waited for. The agent's messages are kept until
// the test takes them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"
#include "tests/unit/temporary_folder.h"

namespace hv::tests {

enum class Streams { kSocket, kPipes };

class AgentClient {
 public:
  explicit AgentClient(Streams streams = Streams::kSocket,
                       std::vector<std::string> more_environment = {});
  ~AgentClient();

  template <class Message>
  void send(const Message& message) {
    send_bytes(encode_frame_of(message));
  }
  void send_bytes(const std::string& bytes);

  // The next message of that type, whatever came before it; throws when it does not come in time.
  template <class Message>
  Message expect(std::chrono::milliseconds within = std::chrono::seconds(20)) {
    const auto found = await(static_cast<std::uint8_t>(Message::kType), now() + within);
    if (!found)
      throw std::runtime_error("no message of type " +
                               std::to_string(static_cast<int>(Message::kType)) + " came; " +
                               told());
    Message message;
    if (!decode(found->payload, &message)) throw std::runtime_error("a malformed message came");
    return message;
  }
  // Takes what has come by then.
  template <class Message>
  bool comes(std::chrono::milliseconds within) {
    return await(static_cast<std::uint8_t>(Message::kType), now() + within).has_value();
  }

  // SetupRequest to SetupReply, a grace of 0 is one of 3 s; Launch to Ready; the same and Go to
  // Started.
  wire::SetupReply set_up(wire::SetupRequest setup = {});
  void prepare(const wire::Launch& launch);
  wire::Started start(const wire::Launch& launch);
  // Credit is given back for every byte that comes, unless this was called.
  void withhold_credit() { refill_ = false; }
  // Reads until that stream of that rank has ended, giving credit back, what was withheld too.
  std::string output_of(std::uint32_t rank, std::uint8_t stream = 1);
  std::string output_so_far(std::uint32_t rank, std::uint8_t stream = 1);
  std::size_t received_bytes(std::uint32_t rank) const;
  // Reads what comes until the condition holds; throws after the time.
  void until(const std::function<bool()>& holds, const std::string& what,
             std::chrono::milliseconds within = std::chrono::seconds(20));
  // End to Empty and the process's exit; the exit code.
  int finish(double grace_s = 3);
  int wait_for_exit(std::chrono::milliseconds within = std::chrono::seconds(20));
  void close_streams();
  // Answer no Ping and send none.
  void fall_silent() { silent_ = true; }

  pid_t agent() const { return static_cast<pid_t>(hello.agent.pid); }
  pid_t guard() const { return guard_; }
  const std::string& job_id() const { return job_id_; }
  wire::Hello hello;
  std::vector<std::string> notes;
  int pongs = 0;  // received

 private:
  std::optional<Frame> await(std::uint8_t type, TimePoint deadline);
  void read_more(TimePoint deadline);
  void give_credit(std::uint32_t rank, std::size_t bytes);
  void sort(Frame frame);
  std::string told() const;

  pid_t guard_ = -1;
  UniqueFd in_, out_;
  FrameParser parser_{wire::kMaxAgentPayload};
  std::deque<Frame> frames_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::string> outputs_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, bool> ended_;
  std::string job_id_;
  std::map<std::uint32_t, std::uint32_t> withheld_;
  bool refill_ = true;
  bool silent_ = false;
  bool eof_ = false;
  int exit_code_ = -1;
};

// A Launch of so many ranks of a program with a usual environment; directory /tmp.
wire::Launch launch_of(std::vector<std::string> argv, std::uint32_t ranks = 1);
// The same for a line of shell.
wire::Launch launch_shell(const std::string& script, std::uint32_t ranks = 1);

bool is_alive(pid_t pid);  // there, and no zombie
char state_of(pid_t pid);  // 0 when it is gone
// Polls until the condition holds; throws when it does not in time.
void wait_until(const std::function<bool()>& holds, const std::string& what,
                std::chrono::milliseconds within = std::chrono::seconds(20));
// The pids that payloads have written into a file, one per line, once there are that many.
std::vector<pid_t> pids_in(const std::string& path, std::size_t count);
void expect_gone(const std::vector<pid_t>& pids,
                 std::chrono::milliseconds within = std::chrono::seconds(5));

}  // namespace hv::tests
