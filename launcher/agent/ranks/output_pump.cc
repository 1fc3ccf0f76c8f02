// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/output_pump.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/wire/messages.h"

namespace hv::launcher {
namespace {

constexpr auto kRest = std::chrono::milliseconds(1);
// Reads in a row before the loop serves other descriptors again.
constexpr int kReadsInARow = 4;

std::size_t small_read(int fd) {
  const int capacity = ::fcntl(fd, F_GETPIPE_SZ);
  return capacity > 0 ? static_cast<std::size_t>(capacity) / 4
                      : 0;  // a terminal gives 4 KiB at a time at most
}

}  // namespace

OutputPump::OutputPump(PumpContext& context, UniqueFd fd, std::uint32_t rank, RankStream stream,
                       std::uint64_t* credit, std::function<void()> on_end)
    : context_(context),
      fd_(std::move(fd)),
      rank_(rank),
      stream_(stream),
      credit_(credit),
      on_end_(std::move(on_end)),
      most_(stream == RankStream::kResults ? wire::Result::kMostBytes : context.scratch.size()),
      small_(small_read(fd_.get())) {
  await_bytes();
}

OutputPump::~OutputPump() {
  if (fd_) stop_waiting();
}

OutputPump::Next OutputPump::read_once() {
  if (!discards_ && (*credit_ == 0 || !context_.link.has_capacity())) return Next::kHold;
  const std::uint64_t most = discards_ ? most_ : std::min<std::uint64_t>(*credit_, most_);
  const ssize_t got = ::read(fd_.get(), context_.scratch.data(), static_cast<std::size_t>(most));
  if (got < 0 && errno == EINTR) return Next::kReadOn;
  if (got < 0 && errno == EAGAIN) return is_last_ ? Next::kEnded : Next::kAwaitBytes;
  // A terminal returns EIO once its other side is closed for good, after the rank's end: the agent
  // holds that side until then, because closing it earlier would send SIGHUP to the rank.
  if (got <= 0) return Next::kEnded;
  if (discards_) return Next::kReadOn;
  *credit_ -= static_cast<std::uint64_t>(got);
  context_.link.send_output(output_frame(rank_, stream_, wall_clock_ns(),
                                         {context_.scratch.data(), static_cast<std::size_t>(got)}));
  return static_cast<std::size_t>(got) < small_ && !is_last_ ? Next::kRest : Next::kReadOn;
}

void OutputPump::poll() {
  if (!fd_) return;
  if (rest_) context_.loop.cancel(*std::exchange(rest_, std::nullopt));
  Next next = Next::kReadOn;
  for (int i = 0; i < kReadsInARow && next == Next::kReadOn; ++i) next = read_once();
  is_held_ = next == Next::kHold;
  switch (next) {
    case Next::kEnded:
      return close_stream();
    case Next::kRest:
      return rest();
    case Next::kHold:
      return stop_waiting();
    case Next::kReadOn:
    case Next::kAwaitBytes:
      break;
  }
  // A descriptor that only poll reports as ended (EPOLLHUP) is read again, so waiting for bytes is
  // right after the last pass, too.
  await_bytes();
}

void OutputPump::finish() {
  is_last_ = true;
  poll();
}

void OutputPump::discard() {
  discards_ = true;
  poll();
}

void OutputPump::rest() {
  context_.loop.unwatch(fd_.get());
  rest_ = context_.loop.call_after(kRest, [this] {
    rest_.reset();
    poll();
  });
}

void OutputPump::await_bytes() {
  context_.loop.watch(fd_.get(), EPOLLIN, [this](std::uint32_t) { poll(); });
}

// Not watched while it may not be read: epoll would report a hang-up again and again.
void OutputPump::stop_waiting() {
  context_.loop.unwatch(fd_.get());
  if (rest_) context_.loop.cancel(*std::exchange(rest_, std::nullopt));
}

void OutputPump::close_stream() {
  stop_waiting();
  fd_.reset();
  context_.link.send_output(output_end_frame(rank_, stream_, wall_clock_ns()));
  const auto on_end = std::move(on_end_);  // it may destroy this pump
  on_end();
}

}  // namespace hv::launcher
