// A small network of fully connected layers: 64 pixels in, 10 digits out, ReLU between.
// SPDX-License-Identifier: Apache-2.0
//
// Knows nothing of other ranks. Every sum runs in a fixed order, so the same input gives the same
// bits.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "examples/digits/dataset.h"

namespace digits {

// A trainable array with its gradient and its momentum, all of equal length.
struct Parameter {
  std::vector<float> value;
  std::vector<float> gradient;
  std::vector<float> momentum;
};

// output[o] = bias[o] + sum over i of input[i] * weights[i * outputs + o].
struct Layer {
  int inputs = 0;
  int outputs = 0;
  Parameter weights;
  Parameter bias;
};

// What a network said about a number of images.
struct Score {
  double loss = 0;  // sum of the cross-entropies
  int64_t correct = 0;
  int64_t images = 0;
};

class Network {
 public:
  // widths: pixels, hidden layers, classes. All values are 0 until initialise() or a broadcast sets
  // them.
  explicit Network(const std::vector<int>& widths);

  std::vector<Layer>& layers() { return layers_; }
  const std::vector<Layer>& layers() const { return layers_; }

  // He's uniform initialisation; the same values on every machine for the same seed.
  void initialise(uint64_t seed);

  // Forward only.
  Score score(const Images& images);

  // Forward and backward; leaves in each gradient its mean over the batch. Calls `ready(layer)`
  // from the last layer to the first, as soon as that layer's gradients are complete, while the
  // others are pending.
  Score learn(const Images& batch, const std::function<void(int layer)>& ready);

  // One step of stochastic gradient descent with momentum on one layer.
  void update(int layer, float learning_rate, float momentum);

  // 64-bit FNV-1a over the bytes of all weights and biases.
  uint64_t hash() const;

 private:
  Score forward(const Images& images);
  void take_gradients(Layer* layer, const std::vector<float>& inputs, int count);
  void go_down(const Layer& layer, const std::vector<float>& inputs, int count);

  std::vector<Layer> layers_;
  std::vector<std::vector<float>> activations_;  // [layer]: its outputs for each image of the batch
  std::vector<float> delta_;  // the loss's derivative by the outputs of the current layer
  std::vector<float> delta_below_;
};

// Continues a 64-bit FNV-1a hash over `bytes` bytes.
inline constexpr uint64_t kFnvStart = 0xcbf29ce484222325u;
uint64_t fnv1a(uint64_t hash, const void* data, size_t bytes);

}  // namespace digits
