// Which backends there are and what the native one takes on.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "runtime/backend/backend_list.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {

TEST_CASE("the native backend is always listed and made by name or by default") {
  CHECK(backend_names() == std::vector<std::string>{"native"});
  run_ranks({1}, {}, [](RankContext& context) {
    for (const char* wanted : {"", "native"}) {
      std::vector<std::unique_ptr<Backend>> backends;
      require(make_backends(context.fabric, wanted, &backends).ok(), "a backend is made");
      require(backends.size() == 1 && std::string(backends[0]->name()) == "native",
              "it is the native one");
    }
  });
}

TEST_CASE("an unknown backend is refused with the names there are") {
  run_ranks({1}, {}, [](RankContext& context) {
    std::vector<std::unique_ptr<Backend>> backends;
    const Status status = make_backends(context.fabric, "carrier-pigeon", &backends);
    require(status.code == StatusCode::kUnsupported, "refused");
    require(status.message.find("native") != std::string::npos, status.message);
    require(status.message.find("carrier-pigeon") != std::string::npos, status.message);
  });
}

TEST_CASE("the native backend takes every type and reduction, but no scaled or averaged bool") {
  run_ranks({1}, {}, [](RankContext& context) {
    for (const ElementType type : all_types())
      for (const Reduction reduction : all_reductions())
        require(context.backend.supports(allreduce_of(type, reduction)), element_type_name(type));
    CollectiveRequest request = allreduce_of(ElementType::kBool, Reduction::kSum);
    request.divisor = 2;
    require(!context.backend.supports(request), "no averaged bool");
    request = allreduce_of(ElementType::kBool, Reduction::kSum);
    request.prescale = 2;
    require(!context.backend.supports(request), "no scaled bool");
    request = allreduce_of(ElementType::kInt32, Reduction::kSum);
    request.divisor = 0;
    require(!context.backend.supports(request), "no division by nothing");
  });
}

}  // namespace hv::runtime
