// A backend that records what it is asked and ends collectives when told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/backend/backend.h"

namespace hv::runtime {

class FakeBackend : public Backend {
 public:
  const char* name() const override { return "fake"; }
  bool supports(const CollectiveRequest& request) const override {
    return request.type != refused_type;
  }
  std::unique_ptr<Collective> start(CollectiveRequest request) override {
    requests.push_back(std::move(request));
    return std::make_unique<Told>(*this);
  }

  std::vector<CollectiveRequest> requests;
  Progress progress = Progress::kDone;  // what every collective answers
  Status failure;
  ElementType refused_type = ElementType::kBool;
  int under_way = 0;

 private:
  struct Told : Collective {
    explicit Told(FakeBackend& owner) : backend(owner) { ++backend.under_way; }
    ~Told() override { --backend.under_way; }
    Progress advance() override { return backend.progress; }
    Status status() const override { return backend.failure; }
    FakeBackend& backend;
  };
};

}  // namespace hv::runtime
