// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/hvrun_link.h"

#include <array>
#include <cerrno>
#include <utility>

#include "src/base/text.h"
#include "src/wire/messages.h"

namespace hv::launcher {
namespace {

constexpr int kBuffersAtOnce = 32;
// Writes in a row before the loop serves other descriptors again.
constexpr int kWritesInARow = 16;

}  // namespace

HvrunLink::HvrunLink(EventLoop& loop, std::unique_ptr<HvrunStream> stream, LinkCallbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      stream_(std::move(stream)),
      parser_(wire::kMaxAgentPayload) {
  if (!loop_.watch(stream_->in(), EPOLLIN, [this](std::uint32_t) { receive(); })) {
    loop_.call_at(now(), [this] { give_up("its standard input is no pipe and no socket"); });
  }
}

HvrunLink::~HvrunLink() {
  loop_.unwatch(stream_->in());
  loop_.unwatch(stream_->out());
}

void HvrunLink::send_output(std::string frame) {
  if (lost_) return;
  queue_.add_output(std::move(frame));
  flush_soon();
}

void HvrunLink::give_up(const std::string& reason) {
  if (std::exchange(lost_, true)) return;
  queue_.clear();
  loop_.unwatch(stream_->in());
  loop_.unwatch(stream_->out());
  callbacks_.on_lost(reason);
}

void HvrunLink::receive() {
  std::string reason;
  arrived_.clear();
  if (!stream_->read(&arrived_, &reason)) return give_up(reason);
  if (arrived_.empty()) return;
  callbacks_.on_bytes();
  if (!parser_.feed(arrived_)) return give_up("hvrun sent what is no message");
  Frame frame;
  while (!lost_ && parser_.next(&frame)) {
    callbacks_.on_frame(frame);
    if (frame.type != static_cast<std::uint8_t>(wire::Type::kSetupRequest)) continue;
    // SetupRequest held the job's key.
    wipe(&frame.payload);
    wipe(&arrived_);
    parser_.wipe_taken();
  }
  if (!lost_ && parser_.broken()) give_up("hvrun sent what is no message");
}

// At the end of the round of the loop, so that frames of one round leave in one write.
void HvrunLink::flush_soon() {
  if (awaits_capacity_ || std::exchange(flush_is_due_, true)) return;
  loop_.call_at(TimePoint::min(), [this] {
    flush_is_due_ = false;
    flush();
  });
}

ssize_t HvrunLink::write_some(bool is_ready) {
  std::array<iovec, kBuffersAtOnce> buffers;
  const int count = queue_.next_buffers(buffers.data(), kBuffersAtOnce);
  return stream_->write(buffers.data(), count, is_ready);
}

void HvrunLink::flush() {
  bool is_full = false;
  for (int i = 0; i < kWritesInARow && !is_flushed() && !is_full; ++i) {
    const ssize_t wrote = write_some(awaits_capacity_ && i == 0);
    if (wrote < 0) return give_up("write to hvrun: " + errno_text(errno));
    queue_.consume(static_cast<std::size_t>(wrote));
    is_full = wrote == 0 && !is_flushed();
  }
  await_capacity(is_full);
  if (lost_) return;
  if (!is_full && !is_flushed()) flush_soon();
  callbacks_.on_drained();
}

void HvrunLink::await_capacity(bool is_full) {
  if (std::exchange(awaits_capacity_, is_full) == is_full) return;
  if (!is_full) {
    loop_.unwatch(stream_->out());
  } else if (!loop_.watch(stream_->out(), EPOLLOUT, [this](std::uint32_t) { flush(); })) {
    give_up("its standard output is no pipe and no socket");
  }
}

}  // namespace hv::launcher
