// The functions of hvrun.h: arguments in, a number out, nothing thrown.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "runtime/api/birth.h"
#include "runtime/api/context.h"
#include "runtime/api/context_registry.h"
#include "runtime/api/last_error.h"
#include "runtime/api/request_reader.h"
#include "runtime/api/sized_struct.h"
#include "runtime/backend/carrier_table.h"
#include "runtime/backend/gpu/plugin_library.h"
#include "runtime/backend/mpi/mpi_library.h"
#include "runtime/include/hvrun/hvrun.h"
#include "src/base/knob.h"
#include "src/base/text.h"
#include "src/contract/backend_words.h"
#include "src/contract/runtime_knobs.h"

namespace hv::runtime {
namespace {

ContextRegistry& registry() { return ContextRegistry::instance(); }

Status read_options(const hvrun_options* given, hvrun_options* options) {
  *options = {};
  if (given == nullptr) return Status::success();
  Status status = copy_sized({"hvrun_init", "HVRUN_OPTIONS_INIT"}, given, sizeof *options, options);
  return status.ok() ? check_first_sets(*options) : status;
}

Status join(const hvrun_options& options, std::shared_ptr<Context>* made) {
  ContextParts parts;
  if (Status status = parts_of_process(&parts, options.mpi_communicator); !status.ok())
    return status;
  std::shared_ptr<Context> joined;
  if (Status status = Context::join(std::move(parts), &joined); !status.ok()) return status;
  if (Status status = add_first_sets(options, *joined); !status.ok()) return status;
  *made = std::move(joined);
  return Status::success();
}

Status init(const hvrun_options* given, hvrun_context** context) {
  hvrun_options options;
  if (Status status = read_options(given, &options); !status.ok()) return status;
  if (Status status = registry().check_process(); !status.ok()) return status;
  if (context == nullptr)
    return registry().make_default(
        [&](std::shared_ptr<Context>* made) { return join(options, made); });
  std::shared_ptr<Context> made;
  if (Status status = join(options, &made); !status.ok()) return status;
  *context = registry().add(std::move(made));
  return Status::success();
}

Status shut_down(hvrun_context* context) {
  if (Status status = registry().check_process(); !status.ok()) return status;
  if (context == nullptr) {
    registry().leave_default();
    return Status::success();
  }
  const std::shared_ptr<Context> found = registry().remove(context);
  if (found) {
    found->shutdown();
    return Status::success();
  }
  return {StatusCode::kShutdown,
          "hvrun_shutdown: this context is shut down already, or never was one"};
}

template <class Field>
int identity_number(const hvrun_context* context, Field field) noexcept {
  std::shared_ptr<Context> found;
  const hvrun_status status = guarded([&] { return registry().find(context, &found); });
  return status == HVRUN_OK ? found->identity().*field : -1;
}

Status unknown_handle(hvrun_handle handle) {
  if (handle == HVRUN_NO_HANDLE)
    return {StatusCode::kHandle,
            "handle 0 is HVRUN_NO_HANDLE: its hvrun_enqueue failed, or was never called; look at "
            "the status that hvrun_enqueue returned"};
  return {StatusCode::kHandle, "handle " + std::to_string(handle) +
                                   " is unknown here: released before, or another "
                                   "context's"};
}

Status find_operation(hvrun_context* context, hvrun_handle handle, std::shared_ptr<Context>* found,
                      OperationPtr* operation) {
  if (Status status = registry().find(context, found); !status.ok()) return status;
  *operation = (*found)->find(handle);
  return *operation ? Status::success() : unknown_handle(handle);
}

Status enqueue(hvrun_context* context, const hvrun_request* request, hvrun_handle* handle) {
  if (handle == nullptr) return {StatusCode::kArgument, "hvrun_enqueue: handle is NULL"};
  *handle = HVRUN_NO_HANDLE;
  std::shared_ptr<Context> found;
  if (Status status = registry().find(context, &found); !status.ok()) return status;
  OperationPtr operation;
  if (Status status = read_request(request, found->identity().size, &operation); !status.ok())
    return status;
  return found->enqueue(std::move(operation), handle);
}

Status poll(hvrun_context* context, hvrun_handle handle) {
  std::shared_ptr<Context> found;
  OperationPtr operation;
  if (Status status = find_operation(context, handle, &found, &operation); !status.ok())
    return status;
  found->await(*operation);
  if (!operation->is_done.load(std::memory_order_acquire)) return {StatusCode::kInProgress, {}};
  return operation->outcome;
}

// Negative: never. What lies beyond a century is never, too.
Status deadline_of(double seconds, TimePoint* deadline) {
  if (std::isnan(seconds))
    return {StatusCode::kArgument, "hvrun_wait: timeout_seconds is no number"};
  constexpr double kCentury = 3.15e9;
  *deadline =
      seconds < 0 || seconds > kCentury
          ? TimePoint::max()
          : now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  return Status::success();
}

Status check_result(const hvrun_result* result) {
  if (result == nullptr || result->struct_size >= sizeof result->struct_size)
    return Status::success();
  return {StatusCode::kArgument, "hvrun_wait: begin the result with HVRUN_RESULT_INIT"};
}

// As much of it as the caller's version knows; its struct_size stays.
void write_result(const Operation& operation, hvrun_result* result) {
  hvrun_result full;
  std::memset(&full, 0, sizeof full);
  full.struct_size = result->struct_size;
  full.type = static_cast<hvrun_type>(operation.description.type);
  full.ndim = static_cast<int32_t>(operation.result_shape.size());
  full.shape = operation.result_shape.data();
  full.data = operation.output;
  full.bytes = operation.result_bytes;
  full.received_splits = operation.received.empty() ? nullptr : operation.received.data();
  full.received_split_count = operation.received.size();
  full.last_joined = operation.last_joined;
  if (operation.owned_indices != nullptr) {
    full.indices = operation.owned_indices.get();
    full.index_type = static_cast<hvrun_type>(operation.description.index_type);
  }
  std::memcpy(result, &full, std::min(result->struct_size, sizeof full));
}

Status wait(hvrun_context* context, hvrun_handle handle, double timeout_seconds,
            hvrun_result* result) {
  TimePoint deadline;
  if (Status status = deadline_of(timeout_seconds, &deadline); !status.ok()) return status;
  if (Status status = check_result(result); !status.ok()) return status;
  std::shared_ptr<Context> found;
  OperationPtr operation;
  if (Status status = find_operation(context, handle, &found, &operation); !status.ok())
    return status;
  const Status outcome = found->wait(*operation, deadline);
  if (outcome.ok() && result != nullptr) write_result(*operation, result);
  return outcome;
}

// Operations whose results outlive their context. Never destroyed, as the contexts' table.
HandleTable& kept() {
  static HandleTable* const table = new HandleTable;
  return *table;
}

Status keep(hvrun_context* context, hvrun_handle handle) {
  std::shared_ptr<Context> found;
  OperationPtr operation;
  if (Status status = find_operation(context, handle, &found, &operation); !status.ok())
    return status;
  if (!operation->is_done.load(std::memory_order_acquire))
    return {StatusCode::kArgument, "hvrun_keep: the operation on '" + printable(operation->name) +
                                       "' is not complete; call hvrun_wait before"};
  if (operation = found->take(handle); operation != nullptr)
    kept().add(handle, std::move(operation));
  return Status::success();
}

Status nccl_version(std::int32_t* version) {
  if (version == nullptr) return {StatusCode::kArgument, "hvrun_nccl_version: version is NULL"};
  GpuPlugin* plugin = nullptr;
  Status status = find_gpu_plugin(&plugin);
  return status.ok() ? plugin->version(version) : status;
}

CarrierQuestion carrier_question(const Environment& environment) {
  const KnobReader knobs(runtime_knobs(), environment);
  using Addresses = CarrierQuestion::Addresses;
  const std::string addresses = knobs.text("HVRUN_MPI_CUDA");
  CarrierQuestion question;
  question.names = backend_words(knobs.text("HVRUN_BACKEND"));
  question.deterministic = knobs.flag("HVRUN_DETERMINISTIC");
  question.of_gpus = addresses == "always"  ? Addresses::kAlways
                     : addresses == "never" ? Addresses::kNever
                                            : Addresses::kPerhaps;
  GpuPlugin* plugin = nullptr;
  if (find_gpu_plugin(&plugin).ok())
    question.nccl = [plugin](const CollectiveRequest& request) { return plugin->carries(request); };
  return question;
}

Status carriers(const char** table) {
  if (table == nullptr) return {StatusCode::kArgument, "hvrun_carriers: table is NULL"};
  static const std::string* const words =
      new std::string(carrier_table(carrier_question(Environment::of_process())));
  *table = words->c_str();
  return Status::success();
}

Status mpi_version(const char** version, std::int32_t* thread_level) {
  if (version == nullptr) return {StatusCode::kArgument, "hvrun_mpi_version: version is NULL"};
  std::string library;
  int level = -1;
  Status status = ask_mpi(Environment::of_process(), &library, &level);
  if (!status.ok()) return status;
  static std::mutex mutex;  // guards the next, whose strings stay
  static auto* const told = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  *version = told->insert(std::move(library)).first->c_str();
  if (thread_level != nullptr) *thread_level = level;
  return Status::success();
}

Status release_handle(hvrun_context* context, hvrun_handle handle) {
  if (Status status = registry().check_process(); !status.ok()) return status;
  if (const OperationPtr operation = kept().take(handle)) {
    let_go(*operation);
    return Status::success();
  }
  std::shared_ptr<Context> found;
  if (Status status = registry().find(context, &found); !status.ok()) return status;
  return found->release(handle) ? Status::success() : unknown_handle(handle);
}

// Reads the request, then runs it to its end.
Status run(hvrun_context* context, const hvrun_request& request) {
  std::shared_ptr<Context> found;
  if (Status status = registry().find(context, &found); !status.ok()) return status;
  OperationPtr operation;
  if (Status status = read_request(&request, found->identity().size, &operation); !status.ok())
    return status;
  if (request.output == nullptr && operation->description.bytes() > 0) {
    return {StatusCode::kArgument, "tensor '" + printable(operation->name) +
                                       "': output is NULL; a blocking call needs one"};
  }
  return found->run(std::move(operation));
}

Status join_all(hvrun_context* context, int32_t* last_joined) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_JOIN;
  std::shared_ptr<Context> found;
  if (Status status = registry().find(context, &found); !status.ok()) return status;
  OperationPtr operation;
  if (Status status = read_request(&request, found->identity().size, &operation); !status.ok())
    return status;
  Status status = found->run(operation);
  if (status.ok() && last_joined != nullptr) *last_joined = operation->last_joined;
  return status;
}

}  // namespace
}  // namespace hv::runtime

namespace api = hv::runtime;

hvrun_status hvrun_init(const hvrun_options* options, hvrun_context** context) {
  return api::guarded([&] { return api::init(options, context); });
}

hvrun_status hvrun_shutdown(hvrun_context* context) {
  return api::guarded([&] { return api::shut_down(context); });
}

int hvrun_rank(const hvrun_context* context) {
  return api::identity_number(context, &hv::RankIdentity::rank);
}
int hvrun_size(const hvrun_context* context) {
  return api::identity_number(context, &hv::RankIdentity::size);
}
int hvrun_local_rank(const hvrun_context* context) {
  return api::identity_number(context, &hv::RankIdentity::local_rank);
}
int hvrun_local_size(const hvrun_context* context) {
  return api::identity_number(context, &hv::RankIdentity::local_size);
}
int hvrun_cross_rank(const hvrun_context* context) {
  return api::identity_number(context, &hv::RankIdentity::cross_rank);
}
int hvrun_cross_size(const hvrun_context* context) {
  return api::identity_number(context, &hv::RankIdentity::cross_size);
}

hvrun_status hvrun_enqueue(hvrun_context* context, const hvrun_request* request,
                           hvrun_handle* handle) {
  return api::guarded([&] { return api::enqueue(context, request, handle); });
}

hvrun_status hvrun_poll(hvrun_context* context, hvrun_handle handle) {
  return api::guarded([&] { return api::poll(context, handle); });
}

hvrun_status hvrun_wait(hvrun_context* context, hvrun_handle handle, double timeout_seconds,
                        hvrun_result* result) {
  return api::guarded([&] { return api::wait(context, handle, timeout_seconds, result); });
}

hvrun_status hvrun_release(hvrun_context* context, hvrun_handle handle) {
  return api::guarded([&] { return api::release_handle(context, handle); });
}

hvrun_status hvrun_keep(hvrun_context* context, hvrun_handle handle) {
  return api::guarded([&] { return api::keep(context, handle); });
}

hvrun_status hvrun_allreduce(hvrun_context* context, const char* name, const void* input,
                             void* output, int64_t count, hvrun_type type,
                             hvrun_reduction reduction) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.type = type;
  request.name = name;
  request.reduction = reduction;
  request.ndim = 1;
  request.shape = &count;
  request.input = input;
  request.output = output;
  return api::guarded([&] { return api::run(context, request); });
}

hvrun_status hvrun_broadcast(hvrun_context* context, const char* name, void* buffer, int64_t count,
                             hvrun_type type, int root) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_BROADCAST;
  request.type = type;
  request.name = name;
  request.root = root;
  request.ndim = 1;
  request.shape = &count;
  request.input = buffer;
  request.output = buffer;
  return api::guarded([&] { return api::run(context, request); });
}

hvrun_status hvrun_barrier(hvrun_context* context) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_BARRIER;
  return api::guarded([&] { return api::run(context, request); });
}

hvrun_status hvrun_join(hvrun_context* context, int32_t* last_joined) {
  return api::guarded([&] { return api::join_all(context, last_joined); });
}

const char* hvrun_last_error(void) { return api::last_error(); }

const char* hvrun_status_name(hvrun_status status) {
  return hv::status_name(static_cast<hv::StatusCode>(status));
}

#define HVRUN_TEXT_OF(number) #number
#define HVRUN_TEXT(number) HVRUN_TEXT_OF(number)
const char* hvrun_version(void) {
  return HVRUN_TEXT(HVRUN_VERSION_MAJOR) "." HVRUN_TEXT(HVRUN_VERSION_MINOR) "." HVRUN_TEXT(
      HVRUN_VERSION_PATCH);
}

hvrun_status hvrun_carriers(const char** table) {
  return api::guarded([&] { return api::carriers(table); });
}

hvrun_status hvrun_mpi_version(const char** version, int32_t* thread_level) {
  return api::guarded([&] { return api::mpi_version(version, thread_level); });
}

hvrun_status hvrun_nccl_version(int32_t* version) {
  return api::guarded([&] { return api::nccl_version(version); });
}

size_t hvrun_type_size(hvrun_type type) {
  const int number = static_cast<int>(type);
  return api::is_element_type(number) ? api::element_size(static_cast<api::ElementType>(number))
                                      : 0;
}
