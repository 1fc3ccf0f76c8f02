// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/requests.h"

#include <stdexcept>
#include <utility>

#include "runtime/api/request_reader.h"

namespace hv::runtime {

void expect(bool condition, const std::string& words) {
  if (!condition) throw std::runtime_error(words);
}

hvrun_request barrier_request() {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_BARRIER;
  return request;
}

hvrun_request allreduce_request(const char* name, const std::int64_t* count, const void* input,
                                void* output, hvrun_type type, hvrun_reduction reduction) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.name = name;
  request.type = type;
  request.reduction = reduction;
  request.ndim = 1;
  request.shape = count;
  request.input = input;
  request.output = output;
  return request;
}

hvrun_request pair_request(hvrun_operation operation, const char* name, int other,
                           const std::int64_t* count, void* data, hvrun_type type) {
  hvrun_request request = allreduce_request(name, count, nullptr, nullptr, type);
  request.operation = operation;
  request.reduction = static_cast<hvrun_reduction>(0);
  request.root = other;
  if (operation == HVRUN_SEND) request.input = data;
  if (operation == HVRUN_RECEIVE) request.output = data;
  return request;
}

Status run_in(Context& context, const hvrun_request& request) {
  OperationPtr operation;
  if (Status status = read_request(&request, context.identity().size, &operation); !status.ok())
    return status;
  return context.run(std::move(operation));
}

}  // namespace hv::runtime
