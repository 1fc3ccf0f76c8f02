/* Many small gradients, averaged over all ranks: each is enqueued as soon as it is ready, and
 * libhvrun moves those that are ready together as one.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   c++ -std=c++20 fused_allreduce.cc -o fused_allreduce $(pkg-config --cflags --libs hvrun) \
 *     -Wl,-rpath,$(pkg-config --variable=libdir hvrun)
 *   hvrun -np 4 ./fused_allreduce
 */
#include <hvrun/hvrun.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void check(hvrun_status status) {
  if (status == HVRUN_OK) return;
  std::fprintf(stderr, "fused_allreduce: rank %d: %s\n", hvrun_rank(nullptr), hvrun_last_error());
  std::exit(1);
}

// A layer's gradient, with the name that it has on every rank.
struct Gradient {
  std::string name;
  std::vector<float> values;
  hvrun_handle handle = HVRUN_NO_HANDLE;
};

// As a network has them: large matrices and small biases in turn.
std::vector<Gradient> make_gradients(int layers) {
  std::vector<Gradient> gradients;
  for (int layer = 0; layer < layers; ++layer) {
    const auto width = static_cast<std::size_t>(16 << (layer % 4));
    gradients.push_back({"layer " + std::to_string(layer) + " weights",
                         std::vector<float>(width * width), HVRUN_NO_HANDLE});
    gradients.push_back(
        {"layer " + std::to_string(layer) + " bias", std::vector<float>(width), HVRUN_NO_HANDLE});
  }
  return gradients;
}

// Never waits: the ranks agree on what is ready everywhere behind the scenes.
void start_average(Gradient& gradient) {
  const auto count = static_cast<std::int64_t>(gradient.values.size());
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.reduction = HVRUN_AVERAGE;
  request.type = HVRUN_FLOAT32;
  request.name = gradient.name.c_str();
  request.ndim = 1;
  request.shape = &count;
  request.input = gradient.values.data();
  request.output = gradient.values.data();
  check(hvrun_enqueue(nullptr, &request, &gradient.handle));
}

void finish(Gradient& gradient) {
  check(hvrun_wait(nullptr, gradient.handle, -1, nullptr));
  check(hvrun_release(nullptr, gradient.handle));
}

}  // namespace

int main() {
  check(hvrun_init(nullptr, nullptr));
  const int rank = hvrun_rank(nullptr), size = hvrun_size(nullptr);
  std::vector<Gradient> gradients = make_gradients(32);
  std::size_t elements = 0;
  bool is_right = true;
  for (int step = 0; step < 3; ++step) {
    elements = 0;
    // Backward: the last layer's gradient is ready first.
    for (auto gradient = gradients.rbegin(); gradient != gradients.rend(); ++gradient) {
      for (float& value : gradient->values) value = static_cast<float>(step + rank);
      start_average(*gradient);
    }
    const float expected = static_cast<float>(step) + static_cast<float>(size - 1) / 2;
    for (Gradient& gradient : gradients) {
      finish(gradient);
      elements += gradient.values.size();
      for (const float value : gradient.values)
        is_right = is_right && std::abs(value - expected) < 1e-4f;
    }
  }
  std::printf("rank %d of %d: %zu gradients of %zu elements are averaged%s\n", rank, size,
              gradients.size(), elements, is_right ? "" : ", wrongly");
  check(hvrun_shutdown(nullptr));
  return is_right ? 0 : 1;
}
