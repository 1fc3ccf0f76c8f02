// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/pmi_exchange.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/rendezvous/long_wait.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

constexpr std::chrono::seconds kShort{30};
constexpr std::size_t kMostLine = 64 << 10;
constexpr std::size_t kMostParts = 4096;
constexpr std::size_t kLeastValue = 32, kMostValue = 1024;  // letters

std::string pmi_context(const std::string& what) { return "meet the other ranks by PMI: " + what; }

Status broken(const std::string& what) { return {StatusCode::kContract, pmi_context(what)}; }

// Nothing: not hexadecimal.
bool from_hex(const std::string& text, std::string* bytes) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    *bytes += static_cast<char>(high * 16 + low);
  }
  return true;
}

}  // namespace

std::string pmi_value(const std::string& line, const std::string& name) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (line.compare(at, name.size() + 1, name + "=") == 0)
      return line.substr(at + name.size() + 1, end - at - name.size() - 1);
    at = end + 1;
  }
  return {};
}

Status PmiExchange::open(UniqueFd socket, int rank, int size, std::unique_ptr<Exchange>* exchange) {
  std::unique_ptr<PmiExchange> made(new PmiExchange(std::move(socket), rank, size));
  if (Status status = made->start(); !status.ok()) return status;
  *exchange = std::move(made);
  return Status::success();
}

// Without a goodbye this rank's end is a failure to the launcher, which ends the others with it:
// they would wait for it for ever.
PmiExchange::~PmiExchange() {
  if (is_astray_) return;
  std::string ignored;
  (void)ask("cmd=finalize", "finalize_ack", std::chrono::seconds(1), &ignored);
}

Status PmiExchange::start() {
  std::string heard;
  if (Status status =
          ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", kShort, &heard);
      !status.ok())
    return status;
  if (Status status = ask("cmd=get_maxes", "maxes", kShort, &heard); !status.ok()) return status;
  const std::int64_t most = parse_integer(pmi_value(heard, "vallen_max")).value_or(0);
  if (most < static_cast<std::int64_t>(kLeastValue)) return broken("the launcher takes no values");
  // With room for the end of a C string.
  most_value_ = std::min(static_cast<std::size_t>(most) - 1, kMostValue) / 2 * 2;
  if (Status status = ask("cmd=get_my_kvsname", "my_kvsname", kShort, &heard); !status.ok())
    return status;
  space_ = pmi_value(heard, "kvsname");
  return space_.empty() ? broken("the launcher has no place for keys") : Status::success();
}

Status PmiExchange::ask(const std::string& line, const std::string& answer,
                        std::chrono::milliseconds timeout, std::string* heard) {
  std::string words = line + "\n";
  const Status said = send_all(socket_.get(), words.data(), words.size(), kShort);
  wipe(&words);
  if (!said.ok()) return {said.code, pmi_context(said.message)};
  if (Status status = hear_line(timeout, heard); !status.ok()) return status;
  const std::string rc = pmi_value(*heard, "rc");
  if (pmi_value(*heard, "cmd") == answer && (rc.empty() || rc == "0")) return Status::success();
  return broken("the launcher answers '" + printable(*heard, 200) + "' to '" +
                printable(line.substr(0, line.find(' ')), 200) + "'");
}

Status PmiExchange::hear_line(std::chrono::milliseconds timeout, std::string* line) {
  const TimePoint deadline = now() + timeout;
  for (std::size_t end = unread_.find('\n'); end == std::string::npos; end = unread_.find('\n')) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()).count();
    if (left < 0) return {StatusCode::kSystem, pmi_context("not all have come in time")};
    pollfd wait{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min<long long>(left + 1, 1 << 30)));
    char bytes[4096];
    const ssize_t got = ready > 0 ? ::read(socket_.get(), bytes, sizeof bytes) : ready;
    if (got > 0) {
      unread_.append(bytes, static_cast<std::size_t>(got));
    } else if (ready > 0 && got == 0) {
      return broken("the launcher has hung up");
    } else if (got < 0 && errno != EINTR && errno != EAGAIN) {
      return system_status(pmi_context("read from the launcher"), errno);
    }
    if (unread_.size() > kMostLine) return broken("the launcher's answer has no end");
  }
  const std::size_t end = unread_.find('\n');
  *line = unread_.substr(0, end);
  std::string rest = unread_.substr(end + 1);
  wipe(&unread_);
  unread_.swap(rest);
  return Status::success();
}

std::string PmiExchange::key(int rank, std::size_t part) const {
  return "hv-" + std::to_string(gathers_) + "-" + std::to_string(rank) + "-" + std::to_string(part);
}

Status PmiExchange::put(std::size_t part, const std::string& value) {
  std::string heard;
  std::string line = "cmd=put kvsname=" + space_ + " key=" + key(rank_, part) + " value=" + value;
  const Status status = ask(line, "put_result", kShort, &heard);
  wipe(&line);
  return status;
}

Status PmiExchange::get(int rank, std::size_t part, std::string* value) {
  std::string heard;
  const Status status =
      ask("cmd=get kvsname=" + space_ + " key=" + key(rank, part), "get_result", kShort, &heard);
  *value = pmi_value(heard, "value");
  const bool is_unknown = !status.ok() && pmi_value(heard, "cmd") == "get_result";
  wipe(&heard);
  return is_unknown ? Status{StatusCode::kPeerLost, status.message} : status;
}

// Part 0 says how many parts follow.
Status PmiExchange::say(const std::string& mine) {
  std::string text = hex(mine.data(), mine.size());
  const std::size_t parts = (text.size() + most_value_ - 1) / most_value_;
  if (parts > kMostParts) return broken("a rank has too much to say");
  Status status = put(0, std::to_string(parts));
  for (std::size_t part = 0; part < parts && status.ok(); ++part) {
    std::string value = text.substr(part * most_value_, most_value_);
    status = put(part + 1, value);
    wipe(&value);
  }
  wipe(&text);
  return status;
}

Status PmiExchange::hear(int rank, std::string* bytes) {
  std::string value;
  const Status heard = get(rank, 0, &value);
  is_astray_ = heard.code == StatusCode::kPeerLost && gathers_ == 0;
  if (is_astray_) return silent_rank("PMI", rank_, rank, "the launcher has no key " + key(rank, 0));
  if (!heard.ok()) return heard;
  const std::int64_t count = parse_integer(value).value_or(-1);
  bool is_understood = count >= 0 && count <= static_cast<std::int64_t>(kMostParts);
  std::string whole;
  Status status;
  for (std::int64_t part = 1; part <= count && is_understood && status.ok(); ++part) {
    status = get(rank, static_cast<std::size_t>(part), &value);
    append_secret(&whole, value);
    wipe(&value);
  }
  if (!status.ok()) return status;
  bytes->reserve(whole.size() / 2);
  is_understood = is_understood && from_hex(whole, bytes);
  wipe(&whole);
  return is_understood
             ? Status::success()
             : broken("rank " + std::to_string(rank) + " says nothing that is understood");
}

// The launcher does not tell who is missing. Two ranks say so: one of them may be missing itself.
Status PmiExchange::gather(const std::string& mine, const WaitLimits& limits,
                           std::vector<std::string>* all) {
  if (Status status = say(mine); !status.ok()) return status;
  {
    const LongWait wait(rank_ < 2 ? limits.stall : std::chrono::milliseconds::zero(), [&] {
      return waited_words(rank_, limits.stall,
                          "one or more of " + std::to_string(size_) + " ranks");
    });
    std::string heard;
    const Status met = ask("cmd=barrier_in", "barrier_out", limits.timeout, &heard);
    if (!met.ok()) return met;
  }
  all->assign(static_cast<std::size_t>(size_), {});
  for (int rank = 0; rank < size_; ++rank)
    if (Status status = hear(rank, &(*all)[static_cast<std::size_t>(rank)]); !status.ok())
      return status;
  ++gathers_;
  return Status::success();
}

}  // namespace hv
