// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/bootstrap.h"

#include <algorithm>
#include <cstring>

#include "launcher/spawn/start_line.h"
#include "src/base/text.h"
#include "src/wire/authentication.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kWordsShown = 600;
const std::string kBlankLines(8, '\n');

// First what had already been read, then the channel itself.
class ResumedChannel : public AgentChannel {
 public:
  ResumedChannel(std::string first, std::unique_ptr<AgentChannel> channel)
      : first_(std::move(first)), channel_(std::move(channel)) {}
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    if (first_.empty()) co_return co_await channel_->read_some(buffer);
    const std::size_t size = std::min(buffer.size(), first_.size());
    std::memcpy(buffer.data(), first_.data(), size);
    first_.erase(0, size);
    co_return size;
  }
  asio::awaitable<bool> write(asio::const_buffer buffer) override {
    return channel_->write(buffer);
  }
  void close() override {
    first_.clear();
    channel_->close();
  }
  std::string last_words() const override { return channel_->last_words(); }

 private:
  std::string first_;
  std::unique_ptr<AgentChannel> channel_;
};

class Bootstrap {
 public:
  Bootstrap(AgentChannel& channel, const BootstrapPlan& plan, StartDeadline& deadline)
      : channel_(channel),
        plan_(plan),
        deadline_(deadline),
        marker_("hv" + random_hex(16)),
        parser_(kShellMarker) {}

  // Returns what has already come from the agent.
  asio::awaitable<std::string> run() {
    // Lines without effect, for start-up files that read some.
    echo_test_ = ": " + marker_ + "-echo";
    const std::string lines = kBlankLines + echo_test_ + "\n";
    (void)co_await channel_.write(asio::buffer(lines));
    while ((co_await next_reply()).kind != BootstrapReply::Kind::kShell) {
    }
    echo_test_.clear();
    parser_.expect(marker_);
    const std::string script =
        bootstrap_script({marker_, plan_.build_id, plan_.agent->content().size(),
                          plan_.agent->machine(), plan_.agent_words});
    // A failed write shows as the end of the stream, with the reason.
    (void)co_await channel_.write(asio::buffer(script));
    for (;;) {
      const BootstrapReply reply = co_await next_reply();
      if (reply.kind == BootstrapReply::Kind::kRun) co_return parser_.take_rest();
      if (reply.kind == BootstrapReply::Kind::kFail) throw_no_folder(reply.reasons);
      if (reply.kind == BootstrapReply::Kind::kOther) throw_other_machine(reply.machine);
      (void)co_await channel_.write(asio::buffer(plan_.agent->content()));
    }
  }

 private:
  std::string doing() const { return "start the agent on host " + plan_.host.host; }

  asio::awaitable<BootstrapReply> next_reply() {
    std::string buffer(16 << 10, '\0');
    for (;;) {
      if (auto reply = parser_.next()) co_return *reply;
      if (parser_.flooded()) {
        throw Error(ErrorKind::kStart, doing() + ": its start-up files print without end" + noise(),
                    "make them silent for commands that ssh runs");
      }
      const std::size_t got = co_await channel_.read_some(asio::buffer(buffer));
      deadline_.throw_if_passed();
      if (got == 0) throw_ended();
      if (plan_.has_logged_in) plan_.has_logged_in();
      parser_.feed({buffer.data(), got});
      if (!echo_test_.empty() && parser_.noise().find(echo_test_) != std::string::npos)
        throw_echo();
    }
  }

  std::string noise() const {
    const std::string text = parser_.noise();
    return trim(text).empty() ? "" : " (it printed: " + printable(trim(text), kWordsShown) + ")";
  }

  [[noreturn]] void throw_ended() {
    const std::string words = channel_.last_words();
    const JudgedWords judged = plan_.host.judge(words);
    const std::string reason =
        words.empty() ? "the connection was closed" : printable(judged.reason, kWordsShown);
    throw EndedEarly(doing() + ": " + reason + noise(),
                     judged.advice.empty() ? plan_.host.if_it_ends : judged.advice, words);
  }

  [[noreturn]] void throw_echo() const {
    throw Error(ErrorKind::kStart,
                doing() +
                    ": its start-up files read standard input to its end (such as 'cat' without a "
                    "file)",
                "let them end before that for commands that ssh runs: [ -t 0 ] || return");
  }

  [[noreturn]] void throw_no_folder(const std::string& reasons) const {
    throw Error(ErrorKind::kStart,
                doing() + ": no folder there can hold and run it: " + printable(reasons, 2000),
                "free some space, or set XDG_CACHE_HOME or TMPDIR there to a folder that may hold "
                "programs");
  }

  [[noreturn]] void throw_other_machine(const std::string& machine) const {
    throw Error(ErrorKind::kStart,
                doing() + ": it is a " + printable(machine) +
                    " machine, and this hvrun's agent is built for " + plan_.agent->machine(),
                "use hosts of one kind, or an hvrun that is built for " + printable(machine));
  }

  AgentChannel& channel_;
  const BootstrapPlan& plan_;
  StartDeadline& deadline_;
  std::string marker_;
  std::string echo_test_;  // comes back only from a program that prints its input; empty: no more
  ReplyParser parser_;
};

}  // namespace

asio::awaitable<std::unique_ptr<AgentChannel>> bootstrap_agent(
    std::unique_ptr<AgentChannel> channel, BootstrapPlan plan, StartDeadline& deadline) {
  const auto phase = deadline.enter("start the agent on host " + plan.host.host,
                                    plan.host.if_it_waits, [raw = channel.get()] { raw->close(); });
  Bootstrap bootstrap(*channel, plan, deadline);
  std::string first = co_await bootstrap.run();
  deadline.throw_if_passed();
  if (first.empty()) co_return channel;
  co_return std::make_unique<ResumedChannel>(std::move(first), std::move(channel));
}

}  // namespace hv::launcher
