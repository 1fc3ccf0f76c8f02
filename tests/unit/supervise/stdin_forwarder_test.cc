// Tests of launcher/supervise/streams/stdin_forwarder.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/stdin_forwarder.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "src/base/unique_fd.h"

using namespace hv;
using namespace hv::launcher;

namespace {

// Descriptor 0 is the reading end of a pipe for as long as this lives.
class PipeAsStdin {
 public:
  explicit PipeAsStdin(int flags = 0) : saved_(::fcntl(0, F_DUPFD_CLOEXEC, 10)) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | flags) == 0);
    REQUIRE(::dup2(ends[0], 0) == 0);
    ::close(ends[0]);
    writer_ = UniqueFd(ends[1]);
  }
  ~PipeAsStdin() {
    writer_.reset();
    if (saved_.get() >= 0)
      ::dup2(saved_.get(), 0);
    else
      ::close(0);
  }
  void write(const std::string& text) {
    REQUIRE(::write(writer_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void end() { writer_.reset(); }

 private:
  UniqueFd saved_, writer_;
};

// Stores what was delivered, and waits for it.
class Receiver {
 public:
  StdinCallbacks callbacks() {
    return {[this](std::string bytes) {
              const std::lock_guard lock(mutex_);
              chunks_.push_back(std::move(bytes));
              changed_.notify_all();
            },
            [this](int error) {
              const std::lock_guard lock(mutex_);
              error_ = error;
            }};
  }
  std::string wait_for_bytes(std::size_t size) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all().size() >= size; });
    return all();
  }
  void wait_for_end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !chunks_.empty() && chunks_.back().empty(); });
  }
  int error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  std::size_t longest_chunk() {
    const std::lock_guard lock(mutex_);
    std::size_t longest = 0;
    for (const auto& chunk : chunks_) longest = std::max(longest, chunk.size());
    return longest;
  }

 private:
  std::string all() const {
    std::string text;
    for (const auto& chunk : chunks_) text += chunk;
    return text;
  }
  std::mutex mutex_;  // guards chunks_ and error_
  std::condition_variable changed_;
  std::vector<std::string> chunks_;
  int error_ = 0;
};

}  // namespace

TEST_CASE("input is delivered as it comes, and its end is an empty chunk") {
  PipeAsStdin input;
  Receiver receiver;
  StdinForwarder forwarder(1000, receiver.callbacks());
  input.write("one\n");
  CHECK(receiver.wait_for_bytes(4) == "one\n");
  input.write("two, no newline");
  CHECK(receiver.wait_for_bytes(19) == "one\ntwo, no newline");
  input.end();
  receiver.wait_for_end();
}

TEST_CASE("no more is read than the window holds until the rank has taken some") {
  PipeAsStdin input;
  Receiver receiver;
  StdinForwarder forwarder(10, receiver.callbacks());
  input.write("0123456789abcdefghij");
  CHECK(receiver.wait_for_bytes(10) == "0123456789");
  forwarder.add_window(3);
  CHECK(receiver.wait_for_bytes(13) == "0123456789abc");
  forwarder.add_window(100);
  CHECK(receiver.wait_for_bytes(20) == "0123456789abcdefghij");
  CHECK(receiver.longest_chunk() <= 10);
  input.end();
  receiver.wait_for_end();
}

TEST_CASE("a forwarder that is gone delivers nothing more, though its thread still reads") {
  PipeAsStdin input;
  auto receiver = std::make_shared<Receiver>();
  { StdinForwarder forwarder(1000, receiver->callbacks()); }
  input.write("late");
  input.end();
  CHECK(receiver->longest_chunk() == 0);
}

TEST_CASE("input that another process has made non-blocking is waited for") {
  PipeAsStdin input(O_NONBLOCK);
  Receiver receiver;
  StdinForwarder forwarder(1000, receiver.callbacks());
  input.write("one\n");
  CHECK(receiver.wait_for_bytes(4) == "one\n");
  input.write("two\n");  // at the latest now nothing was there
  CHECK(receiver.wait_for_bytes(8) == "one\ntwo\n");
  input.end();
  receiver.wait_for_end();
  CHECK(receiver.error() == 0);
}

TEST_CASE("input that cannot be read ends, with the reason") {
  PipeAsStdin input;
  const UniqueFd directory(::open("/", O_RDONLY | O_CLOEXEC));
  REQUIRE(::dup2(directory.get(), 0) == 0);
  Receiver receiver;
  StdinForwarder forwarder(1000, receiver.callbacks());
  receiver.wait_for_end();
  CHECK(receiver.error() == EISDIR);
}
