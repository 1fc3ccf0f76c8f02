// What tests of the output room share: pipes, a folder, and an owner that listens to the room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "launcher/output/output_room.h"
#include "tests/unit/pipe.h"
#include "tests/unit/temporary_folder.h"

namespace hv::launcher {

using tests::Pipe;

// What the room tells its owner. Waits for conditions instead of for time.
class Owner {
 public:
  OutputRoom::Written written() {
    return [this](std::uint32_t rank, std::size_t bytes) {
      const std::lock_guard lock(mutex_);
      written_[rank] += bytes;
      changed_.notify_all();
    };
  }
  OutputRoom::Broken broken() {
    return [this](const std::string& what, int errno_value, int stream) {
      const std::lock_guard lock(mutex_);
      broken_.push_back({what, errno_value, stream});
      changed_.notify_all();
    };
  }
  struct Breakage {
    std::string what;
    int errno_value;
    int stream;
  };
  void wait_written(std::uint32_t rank, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    REQUIRE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return written_[rank] >= bytes; }));
    CHECK(written_[rank] == bytes);
  }
  Breakage wait_broken() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !broken_.empty(); }));
    return broken_.front();
  }
  std::size_t written_of(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    return written_[rank];
  }
  std::size_t breakages() {
    const std::lock_guard lock(mutex_);
    return broken_.size();
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<std::uint32_t, std::size_t> written_;
  std::vector<Breakage> broken_;
};

struct Folder : tests::TemporaryFolder {
  std::string text_of(const std::string& file) const {
    REQUIRE(std::filesystem::exists(*this / file));
    return tests::file_content(*this / file);
  }
};

inline OutputOptions onto(const Pipe& out, const Pipe& errors) {
  OutputOptions options;
  options.stdout_fd = out.writer.get();
  options.stderr_fd = errors.writer.get();
  return options;
}

inline OutputChunk chunk(std::uint32_t rank, int stream, std::string bytes, bool end = false) {
  return {rank, stream, 0, std::move(bytes), end};
}

}  // namespace hv::launcher
