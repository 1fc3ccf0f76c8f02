// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/backend_list.h"

#include "runtime/backend/native/native_backend.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Backend> (*make)(Fabric& fabric);  // nullptr: not usable here
};

std::unique_ptr<Backend> make_native(Fabric& fabric) {
  HV_CHECK(fabric.data_plane() != nullptr, "the native backend moves data over the fabric");
  return std::make_unique<NativeBackend>(*fabric.data_plane());
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {{"native", make_native}};
  return list;
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

Status make_backends(Fabric& fabric, const std::string& wanted,
                     std::vector<std::unique_ptr<Backend>>* backends) {
  for (const Entry& entry : entries()) {
    if (!wanted.empty() && wanted != entry.name) continue;
    if (auto backend = entry.make(fabric)) backends->push_back(std::move(backend));
  }
  if (!backends->empty()) return Status::success();
  return {StatusCode::kUnsupported, "choose a backend: there is no '" + wanted +
                                        "' here; this build has: " + join(backend_names(), ", ")};
}

}  // namespace hv::runtime
