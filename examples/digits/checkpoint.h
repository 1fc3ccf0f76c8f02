// A training's state in one file, written whole or not at all.
// SPDX-License-Identifier: Apache-2.0
//
// magic, version, the network's shape, seed, epochs done, then per layer the weights, the bias and
// the momentum of both, and a 64-bit FNV-1a hash of all that. Native byte order; the version shows
// another.
#pragma once

#include <cstdint>
#include <string>

#include "examples/digits/network.h"

namespace digits {

struct Progress {
  uint64_t seed = 0;
  int64_t epochs_done = 0;
};

// Throws std::runtime_error when a checkpoint could not be written here: better before hours of
// training than after.
void require_writable(const std::string& path);

// Replaces `path` by way of a temporary file beside it, so that a kill at any instant leaves the
// old state or the new one. Throws std::runtime_error naming the file and the system's reason.
void save_checkpoint(const std::string& path, const Network& network, const Progress& progress);

// False when there is no such file. Throws std::runtime_error when it is not a checkpoint of a
// network of this shape, is damaged, or cannot be read; `network` is then unchanged.
bool load_checkpoint(const std::string& path, Network* network, Progress* progress);

}  // namespace digits
