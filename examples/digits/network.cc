// Forward, backward and update of the network, one image after the other.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/network.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace digits {
namespace {

Parameter make_parameter(int length) {
  return {std::vector<float>(length), std::vector<float>(length), std::vector<float>(length)};
}

// The inner loop runs over outputs, which lie side by side: the compiler can use vectors without
// changing the order of any sum.
void apply_layer(const Layer& layer, const float* input, float* output) {
  std::copy(layer.bias.value.begin(), layer.bias.value.end(), output);
  for (int i = 0; i < layer.inputs; ++i) {
    const float factor = input[i];
    const float* row = &layer.weights.value[size_t(i) * layer.outputs];
    for (int o = 0; o < layer.outputs; ++o) output[o] += factor * row[o];
  }
}

// Turns one image's outputs into probabilities and returns the cross-entropy of the right one.
double softmax(float* outputs, int label) {
  const float largest = *std::max_element(outputs, outputs + kClasses);
  float sum = 0;
  for (int c = 0; c < kClasses; ++c) sum += outputs[c] = std::exp(outputs[c] - largest);
  for (int c = 0; c < kClasses; ++c) outputs[c] /= sum;
  return -std::log(std::max(outputs[label], 1e-30f));
}

void add_gradients(const float* input, const float* delta, Layer* layer) {
  for (int i = 0; i < layer->inputs; ++i) {
    const float factor = input[i];
    float* row = &layer->weights.gradient[size_t(i) * layer->outputs];
    for (int o = 0; o < layer->outputs; ++o) row[o] += factor * delta[o];
  }
  for (int o = 0; o < layer->outputs; ++o) layer->bias.gradient[o] += delta[o];
}

// What the layer below must change; ReLU passes nothing where its output was 0.
void pass_down(const Layer& layer, const float* input, const float* delta, float* below) {
  for (int i = 0; i < layer.inputs; ++i) {
    const float* row = &layer.weights.value[size_t(i) * layer.outputs];
    float sum = 0;
    for (int o = 0; o < layer.outputs; ++o) sum += row[o] * delta[o];
    below[i] = input[i] > 0 ? sum : 0;
  }
}

void step(Parameter* parameter, float learning_rate, float momentum) {
  for (size_t i = 0; i < parameter->value.size(); ++i) {
    parameter->momentum[i] = momentum * parameter->momentum[i] + parameter->gradient[i];
    parameter->value[i] -= learning_rate * parameter->momentum[i];
  }
}

}  // namespace

Network::Network(const std::vector<int>& widths) : activations_(widths.size() - 1) {
  for (size_t i = 0; i + 1 < widths.size(); ++i)
    layers_.push_back({widths[i], widths[i + 1], make_parameter(widths[i] * widths[i + 1]),
                       make_parameter(widths[i + 1])});
}

// Not std::uniform_real_distribution, whose values are the standard library's choice.
void Network::initialise(uint64_t seed) {
  std::mt19937_64 random(seed);
  for (Layer& layer : layers_) {
    const double limit = std::sqrt(6.0 / layer.inputs);
    for (float& value : layer.weights.value)
      value =
          static_cast<float>((static_cast<double>(random() >> 11) / (1ull << 52) - 1.0) * limit);
    std::fill(layer.bias.value.begin(), layer.bias.value.end(), 0.0f);
  }
}

// Leaves the hidden layers' outputs and, in the last layer's place, the probabilities.
Score Network::forward(const Images& images) {
  Score score;
  score.images = images.count();
  for (size_t l = 0; l < layers_.size(); ++l)
    activations_[l].resize(size_t(images.count()) * layers_[l].outputs);
  for (int n = 0; n < images.count(); ++n) {
    const float* input = &images.pixels[size_t(n) * kPixels];
    for (size_t l = 0; l < layers_.size(); ++l) {
      float* output = &activations_[l][size_t(n) * layers_[l].outputs];
      apply_layer(layers_[l], input, output);
      if (l + 1 < layers_.size())
        for (int o = 0; o < layers_[l].outputs; ++o) output[o] = std::max(output[o], 0.0f);
      input = output;
    }
    float* outputs = &activations_.back()[size_t(n) * kClasses];
    score.correct += std::max_element(outputs, outputs + kClasses) - outputs == images.labels[n];
    score.loss += softmax(outputs, images.labels[n]);
  }
  return score;
}

Score Network::score(const Images& images) { return forward(images); }

Score Network::learn(const Images& batch, const std::function<void(int layer)>& ready) {
  const Score score = forward(batch);
  // The derivative of softmax with cross-entropy is the probabilities, less one for the right
  // class.
  delta_ = activations_.back();
  for (int n = 0; n < batch.count(); ++n) delta_[size_t(n) * kClasses + batch.labels[n]] -= 1.0f;
  for (float& value : delta_) value /= static_cast<float>(batch.count());
  for (int l = static_cast<int>(layers_.size()) - 1; l >= 0; --l) {
    const std::vector<float>& inputs = l == 0 ? batch.pixels : activations_[l - 1];
    take_gradients(&layers_[l], inputs, batch.count());
    ready(l);
    if (l > 0) go_down(layers_[l], inputs, batch.count());
  }
  return score;
}

void Network::take_gradients(Layer* layer, const std::vector<float>& inputs, int count) {
  std::fill(layer->weights.gradient.begin(), layer->weights.gradient.end(), 0.0f);
  std::fill(layer->bias.gradient.begin(), layer->bias.gradient.end(), 0.0f);
  for (int n = 0; n < count; ++n)
    add_gradients(&inputs[size_t(n) * layer->inputs], &delta_[size_t(n) * layer->outputs], layer);
}

void Network::go_down(const Layer& layer, const std::vector<float>& inputs, int count) {
  delta_below_.resize(size_t(count) * layer.inputs);
  for (int n = 0; n < count; ++n)
    pass_down(layer, &inputs[size_t(n) * layer.inputs], &delta_[size_t(n) * layer.outputs],
              &delta_below_[size_t(n) * layer.inputs]);
  delta_.swap(delta_below_);
}

void Network::update(int layer, float learning_rate, float momentum) {
  step(&layers_[layer].weights, learning_rate, momentum);
  step(&layers_[layer].bias, learning_rate, momentum);
}

uint64_t fnv1a(uint64_t hash, const void* data, size_t bytes) {
  const auto* byte = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

uint64_t Network::hash() const {
  uint64_t hash = kFnvStart;
  for (const Layer& layer : layers_)
    for (const Parameter* parameter : {&layer.weights, &layer.bias})
      hash = fnv1a(hash, parameter->value.data(), parameter->value.size() * sizeof(float));
  return hash;
}

}  // namespace digits
