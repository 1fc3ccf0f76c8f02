// Encoding, the atomic write and the checked read of a checkpoint.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace digits {
namespace {

using Bytes = std::string;
constexpr char kMagic[] = {'H', 'V', 'D', 'I', 'G', 'I', 'T', 'S'};
constexpr uint32_t kVersion = 1;
constexpr int64_t kMaxEpochs = 1'000'000'000;

// Closes on every way out; close() after a successful fsync has nothing left to report.
struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail(const std::string& doing, const std::string& path,
                       const std::string& reason) {
  throw std::runtime_error(doing + " the checkpoint " + path + ": " + reason);
}

std::string system_reason() { return std::strerror(errno); }

template <typename Value>
void append(Bytes* bytes, const Value& value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(Bytes* bytes, const std::vector<float>& values) {
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// Everything before the seed depends on the network's shape alone, so a reader can compare it
// whole.
Bytes encode_shape(const Network& network) {
  Bytes bytes(kMagic, sizeof kMagic);
  append(&bytes, kVersion);
  append(&bytes, static_cast<uint32_t>(network.layers().size()));
  for (const Layer& layer : network.layers()) {
    append(&bytes, static_cast<uint32_t>(layer.inputs));
    append(&bytes, static_cast<uint32_t>(layer.outputs));
  }
  return bytes;
}

Bytes encode(const Network& network, const Progress& progress) {
  Bytes bytes = encode_shape(network);
  append(&bytes, progress.seed);
  append(&bytes, progress.epochs_done);
  for (const Layer& layer : network.layers()) {
    append(&bytes, layer.weights.value);
    append(&bytes, layer.bias.value);
    append(&bytes, layer.weights.momentum);
    append(&bytes, layer.bias.momentum);
  }
  append(&bytes, fnv1a(kFnvStart, bytes.data(), bytes.size()));
  return bytes;
}

int open_temporary(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail("writing", path, system_reason());
  return fd;
}

void write_whole(int fd, const Bytes& bytes, const std::string& path) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t now = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) fail("writing", path, system_reason());
    written += static_cast<size_t>(now);
  }
}

// Reads one byte more than expected at most: enough to see that a file is too long.
Bytes read_bounded(int fd, size_t limit, const std::string& path) {
  Bytes bytes(limit, '\0');
  size_t have = 0;
  while (have < limit) {
    const ssize_t now = ::read(fd, bytes.data() + have, limit - have);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) fail("reading", path, system_reason());
    if (now == 0) break;
    have += static_cast<size_t>(now);
  }
  bytes.resize(have);
  return bytes;
}

template <typename Value>
void take(const char** at, Value* value) {
  std::memcpy(value, *at, sizeof *value);
  *at += sizeof *value;
}

void take(const char** at, std::vector<float>* values) {
  std::memcpy(values->data(), *at, values->size() * sizeof(float));
  *at += values->size() * sizeof(float);
}

// Compares everything that can be compared before a single value is believed.
void verify(const Bytes& bytes, const Bytes& shape, size_t expected, const std::string& path) {
  if (bytes.size() < sizeof kMagic || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    fail("reading", path, "this is no checkpoint of train_digits");
  if (bytes.size() < shape.size() || std::memcmp(bytes.data(), shape.data(), shape.size()) != 0)
    fail("reading", path, "it belongs to another version, network or kind of machine");
  if (bytes.size() != expected)
    fail("reading", path, "it is damaged: " + std::to_string(expected) + " bytes are expected");
  uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + expected - sizeof stored, sizeof stored);
  if (stored != fnv1a(kFnvStart, bytes.data(), expected - sizeof stored))
    fail("reading", path, "it is damaged: its hash does not fit");
}

// A rename is certain to survive a power cut only once the folder is on the disk too.
void sync_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  const File file{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (file.fd < 0 || ::fsync(file.fd) != 0) fail("writing", path, system_reason());
}

}  // namespace

void require_writable(const std::string& path) {
  std::error_code ignored;  // opening tells what else is wrong with it
  if (std::filesystem::is_directory(path, ignored)) fail("writing", path, std::strerror(EISDIR));
  const std::string temporary = path + ".tmp";
  const File file{open_temporary(temporary)};
  ::unlink(temporary.c_str());
}

void save_checkpoint(const std::string& path, const Network& network, const Progress& progress) {
  const std::string temporary = path + ".tmp";
  {
    const File file{open_temporary(temporary)};
    write_whole(file.fd, encode(network, progress), temporary);
    if (::fsync(file.fd) != 0) fail("writing", temporary, system_reason());
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("writing", path, system_reason());
  sync_folder(path);
}

bool load_checkpoint(const std::string& path, Network* network, Progress* progress) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0 && errno == ENOENT) return false;
  if (file.fd < 0) fail("reading", path, system_reason());
  const Bytes shape = encode_shape(*network);
  const size_t expected = encode(*network, {}).size();
  const Bytes bytes = read_bounded(file.fd, expected + 1, path);
  verify(bytes, shape, expected, path);
  const char* at = bytes.data() + shape.size();
  Progress found;
  take(&at, &found.seed);
  take(&at, &found.epochs_done);
  if (found.epochs_done < 0 || found.epochs_done > kMaxEpochs)
    fail("reading", path, "it is damaged: " + std::to_string(found.epochs_done) + " epochs done");
  for (Layer& layer : network->layers())
    for (auto* values :
         {&layer.weights.value, &layer.bias.value, &layer.weights.momentum, &layer.bias.momentum})
      take(&at, values);
  *progress = found;
  return true;
}

}  // namespace digits
