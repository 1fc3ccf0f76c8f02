// The handwritten digits: reading them, and dealing a rank its share of every epoch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

// Images as rows of kPixels grey values in 0..1.
struct Images {
  std::vector<float> pixels;
  std::vector<int> labels;
  int count() const { return static_cast<int>(labels.size()); }
};

struct Dataset {
  Images train;
  Images test;
};

// Reads the format that examples/data/README.md describes; every sixth image becomes a test image.
// Throws std::runtime_error naming file, line and fault.
Dataset load_dataset(const std::string& path);

// `given`, unless empty; else digits.txt beside the program, in the data folder of the installation
// the program lies in, or where it was built from. Throws std::runtime_error listing the places.
std::string find_dataset(const std::string& given);

// One rank's share of the training images, another order every epoch.
//
// All ranks shuffle all images alike and take turns, so that the shares of an epoch never overlap
// and the ranks need not talk about them. Every rank makes the same number of full batches, for
// each batch ends in a collective operation; the last batches wrap around to the epoch's first
// images.
class Shard {
 public:
  Shard(const Images& images, int rank, int size, int batch_size, uint64_t seed);

  int batches() const { return batches_; }
  void start_epoch(int epoch);
  // Copies the share's batch into `batch`; `number` is 0 .. batches()-1.
  void copy_batch(int number, Images* batch) const;

 private:
  const Images& images_;
  int rank_;
  int size_;
  int batch_size_;
  int batches_;
  uint64_t seed_;
  std::vector<int> order_;
};

}  // namespace digits
