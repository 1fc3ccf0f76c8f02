// Tests of the network: its gradients against differences, its updates against the rule, its hash.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/network.h"

#include <doctest/doctest.h>

#include <cmath>

namespace {

using digits::Images;
using digits::Network;

const auto nothing = [](int) {};

Images some_images(int count) {
  Images images;
  for (int n = 0; n < count; ++n) {
    images.labels.push_back((n * 3) % digits::kClasses);
    for (int p = 0; p < digits::kPixels; ++p)
      images.pixels.push_back(float((n * 31 + p * p * 7 + 1) % 17) / 16);
  }
  return images;
}

double mean_loss(Network* network, const Images& images) {
  return network->score(images).loss / images.count();
}

// The slope of the mean loss by one value of `network`, from both sides.
double slope(Network* network, float* value, const Images& images) {
  const float step = 1e-3f;
  const float middle = *value;
  *value = middle + step;
  const double above = mean_loss(network, images);
  *value = middle - step;
  const double below = mean_loss(network, images);
  *value = middle;
  return (above - below) / (2.0 * step);
}

}  // namespace

TEST_CASE("a network of zeros gives every digit the same chance") {
  Network network({digits::kPixels, 5, digits::kClasses});
  const digits::Score score = network.score(some_images(4));
  CHECK(score.images == 4);
  CHECK(score.loss == doctest::Approx(4 * std::log(10.0)));
}

TEST_CASE("initial weights depend on the seed alone, lie within He's bound, and biases are 0") {
  Network one({digits::kPixels, 8, digits::kClasses}), same = one, other = one;
  one.initialise(1);
  same.initialise(1);
  other.initialise(2);
  CHECK(one.hash() == same.hash());
  CHECK(one.hash() != other.hash());
  const double bound = std::sqrt(6.0 / digits::kPixels);
  for (const float weight : one.layers()[0].weights.value) CHECK(std::abs(weight) <= bound);
  for (const float bias : one.layers()[0].bias.value) CHECK(bias == 0);
}

TEST_CASE("gradients are the slopes of the mean loss") {
  Network network({digits::kPixels, 7, 6, digits::kClasses});
  network.initialise(5);
  const Images images = some_images(3);
  network.learn(images, nothing);
  for (digits::Layer& layer : network.layers())
    for (auto* parameter : {&layer.weights, &layer.bias})
      for (const size_t i : {size_t{0}, parameter->value.size() / 2, parameter->value.size() - 1})
        CHECK(parameter->gradient[i] ==
              doctest::Approx(slope(&network, &parameter->value[i], images))
                  .epsilon(0.02)
                  .scale(0.1));
}

TEST_CASE("layers become ready from the last to the first, each with its gradients complete") {
  Network network({digits::kPixels, 7, 6, digits::kClasses});
  network.initialise(5);
  std::vector<int> order;
  std::vector<std::vector<float>> then(3);
  network.learn(some_images(3), [&](int layer) {
    order.push_back(layer);
    then[layer] = network.layers()[layer].weights.gradient;
  });
  CHECK(order == std::vector<int>{2, 1, 0});
  for (int l = 0; l < 3; ++l) CHECK(then[l] == network.layers()[l].weights.gradient);
}

TEST_CASE("the average of two half batches' gradients is the whole batch's gradient") {
  const Images whole = some_images(4);
  Images halves[2];
  for (int n = 0; n < 4; ++n) {
    const auto begin = whole.pixels.begin() + n * digits::kPixels;
    halves[n % 2].pixels.insert(halves[n % 2].pixels.end(), begin, begin + digits::kPixels);
    halves[n % 2].labels.push_back(whole.labels[n]);
  }
  Network network({digits::kPixels, 7, digits::kClasses});
  network.initialise(5);
  Network first = network, second = network;
  network.learn(whole, nothing);
  first.learn(halves[0], nothing);
  second.learn(halves[1], nothing);
  for (size_t i = 0; i < network.layers()[0].weights.gradient.size(); ++i) {
    const float average =
        (first.layers()[0].weights.gradient[i] + second.layers()[0].weights.gradient[i]) / 2;
    CHECK(network.layers()[0].weights.gradient[i] == doctest::Approx(average).epsilon(1e-4));
  }
}

TEST_CASE("an update follows momentum") {
  Network network({digits::kPixels, digits::kClasses});
  digits::Parameter& bias = network.layers()[0].bias;
  bias.value[0] = 1.0f;
  bias.gradient[0] = 2.0f;
  network.update(0, 0.5f, 0.25f);  // momentum 2, value 1 - 0.5 * 2
  CHECK(bias.momentum[0] == 2.0f);
  CHECK(bias.value[0] == 0.0f);
  network.update(0, 0.5f, 0.25f);  // momentum 0.25 * 2 + 2, value 0 - 0.5 * 2.5
  CHECK(bias.momentum[0] == 2.5f);
  CHECK(bias.value[0] == -1.25f);
}

TEST_CASE("the same steps give the same bits") {
  const Images images = some_images(16);
  uint64_t hashes[2];
  for (uint64_t& hash : hashes) {
    Network network({digits::kPixels, 32, 16, digits::kClasses});
    network.initialise(9);
    for (int i = 0; i < 20; ++i) {
      network.learn(images, nothing);
      for (int layer = 0; layer < 3; ++layer) network.update(layer, 0.05f, 0.9f);
    }
    hash = network.hash();
  }
  CHECK(hashes[0] == hashes[1]);
}

TEST_CASE("a network learns a few images by heart") {
  const Images images = some_images(10);
  Network network({digits::kPixels, 32, digits::kClasses});
  network.initialise(1);
  for (int i = 0; i < 200; ++i) {
    network.learn(images, nothing);
    for (int layer = 0; layer < 2; ++layer) network.update(layer, 0.05f, 0.9f);
  }
  CHECK(network.score(images).correct == 10);
}

TEST_CASE("a wild network's loss stays finite") {
  Network network({digits::kPixels, digits::kClasses});
  network.layers()[0].bias.value[0] = 1e6f;  // all certainty on 0
  Images images = some_images(1);
  images.labels[0] = 5;
  CHECK(std::isfinite(network.score(images).loss));
}

TEST_CASE("the hash is FNV-1a and sees a single changed bit of any weight or bias") {
  CHECK(digits::fnv1a(digits::kFnvStart, "", 0) == 0xcbf29ce484222325u);
  CHECK(digits::fnv1a(digits::kFnvStart, "a", 1) == 0xaf63dc4c8601ec8cu);
  CHECK(digits::fnv1a(digits::kFnvStart, "foobar", 6) == 0x85944171f73967e8u);
  Network network({digits::kPixels, 4, digits::kClasses});
  const uint64_t before = network.hash();
  network.layers()[1].bias.value[9] = std::nextafter(0.0f, 1.0f);
  CHECK(network.hash() != before);
}
