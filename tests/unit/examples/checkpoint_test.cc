// Tests of the checkpoint file: what comes back, what is refused, what a failed write leaves.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/checkpoint.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/unit/examples/temporary_file.h"

namespace {

using digits::Network;
using digits::Progress;

Network trained_network() {
  Network network({digits::kPixels, 4, digits::kClasses});
  network.initialise(3);
  network.layers()[0].weights.momentum[5] = 0.25f;
  network.layers()[1].bias.value[2] = -7.0f;
  network.layers()[1].bias.momentum[9] = 1e-30f;
  return network;
}

// What load_checkpoint says of a file; empty when it takes it.
std::string complaint(const TemporaryFile& file, Network network = trained_network()) {
  Progress progress;
  const uint64_t before = network.hash();
  try {
    digits::load_checkpoint(file.path(), &network, &progress);
  } catch (const std::runtime_error& error) {
    CHECK(network.hash() == before);
    CHECK(std::string(error.what()).find(file.path()) != std::string::npos);
    return error.what();
  }
  return "";
}

std::string saved_bytes(const TemporaryFile& file) {
  digits::save_checkpoint(file.path(), trained_network(), {42, 7});
  return file.read();
}

}  // namespace

TEST_CASE("a checkpoint brings back weights, momentum, seed and epochs") {
  const TemporaryFile file("the state before");
  const Network saved = trained_network();
  digits::save_checkpoint(file.path(), saved, {42, 7});
  Network loaded({digits::kPixels, 4, digits::kClasses});
  Progress progress;
  REQUIRE(digits::load_checkpoint(file.path(), &loaded, &progress));
  CHECK(progress.seed == 42);
  CHECK(progress.epochs_done == 7);
  CHECK(loaded.hash() == saved.hash());
  for (size_t l = 0; l < 2; ++l) {
    CHECK(loaded.layers()[l].weights.momentum == saved.layers()[l].weights.momentum);
    CHECK(loaded.layers()[l].bias.momentum == saved.layers()[l].bias.momentum);
  }
}

TEST_CASE("saving leaves one file and nothing temporary") {
  const TemporaryFile file("");
  saved_bytes(file);
  saved_bytes(file);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(file.folder()))
    ++files;
  CHECK(files == 1);
}

TEST_CASE("a missing checkpoint is no error") {
  const TemporaryFile file("");
  Network network = trained_network();
  Progress progress{1, 2};
  CHECK_FALSE(digits::load_checkpoint(file.path() + ".none", &network, &progress));
  CHECK(progress.epochs_done == 2);
}

TEST_CASE("a file of another kind is refused") {
  CHECK(complaint(TemporaryFile("")).find("no checkpoint") != std::string::npos);
  CHECK(complaint(TemporaryFile("HVDI")).find("no checkpoint") != std::string::npos);
  CHECK(complaint(TemporaryFile(std::string(100'000, 'x'))).find("no checkpoint") !=
        std::string::npos);
}

TEST_CASE("another version and another network's shape are refused") {
  const TemporaryFile file("");
  std::string bytes = saved_bytes(file);
  CHECK(complaint(file, Network({digits::kPixels, 5, digits::kClasses})).find("another") !=
        std::string::npos);
  ++bytes[8];
  file.write(bytes);
  CHECK(complaint(file).find("another version") != std::string::npos);
}

TEST_CASE("every truncation and any flipped bit is noticed") {
  const TemporaryFile file("");
  const std::string bytes = saved_bytes(file);
  REQUIRE(complaint(file).empty());
  for (size_t length = 0; length < bytes.size(); length += 97) {
    file.write(bytes.substr(0, length));
    CHECK_FALSE(complaint(file).empty());
  }
  for (size_t at = 0; at < bytes.size(); at += 53) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    file.write(damaged);
    CHECK_FALSE(complaint(file).empty());
  }
  file.write(bytes + "x");
  CHECK(complaint(file).find("damaged") != std::string::npos);
}

TEST_CASE("an impossible number of epochs is refused though the hash fits") {
  const TemporaryFile file("");
  std::string bytes = saved_bytes(file);
  // magic, version, layer count, two layers, seed: then the epochs.
  const size_t epochs_at = 8 + 4 + 4 + 2 * 8 + 8;
  const int64_t epochs = -1;
  std::memcpy(&bytes[epochs_at], &epochs, sizeof epochs);
  const uint64_t hash = digits::fnv1a(digits::kFnvStart, bytes.data(), bytes.size() - 8);
  std::memcpy(&bytes[bytes.size() - 8], &hash, sizeof hash);
  file.write(bytes);
  CHECK(complaint(file).find("-1 epochs done") != std::string::npos);
}

TEST_CASE("a write that fails names the file and leaves the old state") {
  const TemporaryFile file("");
  saved_bytes(file);
  std::filesystem::create_directory(file.path() + ".tmp");  // in the temporary file's place
  CHECK_THROWS_WITH_AS(digits::save_checkpoint(file.path(), trained_network(), {42, 8}),
                       doctest::Contains("Is a directory"), std::runtime_error);
  Network loaded = trained_network();
  Progress progress;
  CHECK(digits::load_checkpoint(file.path(), &loaded, &progress));
  CHECK(progress.epochs_done == 7);
  CHECK_THROWS_AS(digits::save_checkpoint(file.folder() + "/none/x", loaded, {}),
                  std::runtime_error);
}
