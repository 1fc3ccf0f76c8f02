// The calls into libhvrun.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/session.h"

#include <cstdio>
#include <stdexcept>

namespace digits {
namespace {

constexpr double kForEver = -1;

void check(hvrun_status status, const std::string& doing) {
  if (status != HVRUN_OK)
    throw std::runtime_error(doing + ": " + hvrun_status_name(status) + ": " + hvrun_last_error());
}

}  // namespace

Session::Session() {
  check(hvrun_init(nullptr, nullptr), "joining the job");
  joined_ = true;
  rank_ = hvrun_rank(nullptr);
  size_ = hvrun_size(nullptr);
}

Session::~Session() {
  if (joined_ && hvrun_shutdown(nullptr) != HVRUN_OK)
    std::fprintf(stderr, "train_digits: leaving the job: %s\n", hvrun_last_error());
}

void Session::broadcast(const std::string& name, std::vector<float>* values) {
  check(hvrun_broadcast(nullptr, name.c_str(), values->data(), static_cast<int64_t>(values->size()),
                        HVRUN_FLOAT32, 0),
        "broadcasting " + name);
}

void Session::broadcast(const std::string& name, std::vector<int64_t>* values) {
  check(hvrun_broadcast(nullptr, name.c_str(), values->data(), static_cast<int64_t>(values->size()),
                        HVRUN_INT64, 0),
        "broadcasting " + name);
}

void Session::sum(const std::string& name, std::vector<double>* values) {
  check(hvrun_allreduce(nullptr, name.c_str(), values->data(), values->data(),
                        static_cast<int64_t>(values->size()), HVRUN_FLOAT64, HVRUN_SUM),
        "summing " + name);
}

void Session::leave() {
  joined_ = false;
  check(hvrun_shutdown(nullptr), "leaving the job");
}

GradientExchange::GradientExchange(Network* network) {
  for (size_t l = 0; l < network->layers().size(); ++l) {
    Layer& layer = network->layers()[l];
    const std::string prefix = "gradient of layer " + std::to_string(l + 1) + " ";
    layers_.push_back({});
    for (auto& [suffix, parameter] :
         {std::pair{"weights", &layer.weights}, std::pair{"bias", &layer.bias}})
      layers_.back().push_back({prefix + suffix, &parameter->gradient,
                                static_cast<int64_t>(parameter->gradient.size()), HVRUN_NO_HANDLE});
  }
}

// Small tensors side by side: hvrun fuses those that are ready on every rank into one operation.
void GradientExchange::start(int layer) {
  for (Pending& pending : layers_[layer]) enqueue(&pending);
}

void GradientExchange::finish(int layer) {
  for (Pending& pending : layers_[layer]) wait(&pending);
}

void GradientExchange::enqueue(Pending* pending) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.type = HVRUN_FLOAT32;
  request.reduction = HVRUN_AVERAGE;
  request.name = pending->name.c_str();
  request.ndim = 1;
  request.shape = &pending->length;
  request.input = pending->gradient->data();
  request.output = pending->gradient->data();
  check(hvrun_enqueue(nullptr, &request, &pending->handle), "averaging the " + pending->name);
}

void GradientExchange::wait(Pending* pending) {
  check(hvrun_wait(nullptr, pending->handle, kForEver, nullptr), "averaging the " + pending->name);
  check(hvrun_release(nullptr, pending->handle), "averaging the " + pending->name);
  pending->handle = HVRUN_NO_HANDLE;
}

}  // namespace digits
