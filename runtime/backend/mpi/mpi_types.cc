// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_types.h"

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/backend/mpi/mpi_process.h"
#include "runtime/device/kernels.h"

namespace hv::mpi {

using runtime::ElementType;
using runtime::Reduction;

namespace {

constexpr int kTypes = runtime::kTypeNumbers, kReductions = 6;

template <int kNumber>
void fold(void* input, void* into, int* count, MPI_Datatype* /*type*/) {
  constexpr int kType = kNumber / kReductions, kReduction = kNumber % kReductions;
  const void* const sources[] = {into, input};
  runtime::best_kernels().reduce[kType][kReduction](into, sources, 2,
                                                    static_cast<std::size_t>(*count), {});
}

template <int... kNumbers>
constexpr auto folds_of(std::integer_sequence<int, kNumbers...> /*all*/) {
  return std::array<MPI_User_function*, sizeof...(kNumbers)>{&fold<kNumbers>...};
}
constexpr auto kFolds = folds_of(std::make_integer_sequence<int, kTypes * kReductions>());

// Not small integers, whose sums Open MPI 4.1 cuts off at the type's limits where they must wrap,
// nor the least and the greatest of floats: NaN and the two zeros.
bool folds_as_mpi(ElementType type, Reduction reduction) {
  if (type == ElementType::kInt32 || type == ElementType::kInt64) return true;
  const bool is_wide = type == ElementType::kFloat32 || type == ElementType::kFloat64;
  return is_wide && (reduction == Reduction::kSum || reduction == Reduction::kProduct);
}

MPI_Op mpi_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      return MPI_MIN;
    case Reduction::kMax:
      return MPI_MAX;
    case Reduction::kProduct:
      return MPI_PROD;
    default:
      return MPI_SUM;
  }
}

}  // namespace

MPI_Datatype datatype_of(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kBool:
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return MPI_UINT8_T;
    case ElementType::kInt8:
      return MPI_INT8_T;
    case ElementType::kInt16:
      return MPI_INT16_T;
    case ElementType::kInt32:
      return MPI_INT32_T;
    case ElementType::kInt64:
      return MPI_INT64_T;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return MPI_UINT16_T;
    case ElementType::kFloat32:
      return MPI_FLOAT;
    case ElementType::kFloat64:
      return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
}

Status operation_of(ElementType type, Reduction reduction, MPI_Op* operation) {
  if (folds_as_mpi(type, reduction)) {
    *operation = mpi_operation(reduction);
    return Status::success();
  }
  static std::mutex mutex;
  static std::map<int, MPI_Op> made;  // guarded by mutex
  const int number = static_cast<int>(type) * kReductions + static_cast<int>(reduction);
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = made.try_emplace(number, MPI_OP_NULL);
  if (is_new) {
    const int result =
        MPI_Op_create(kFolds[static_cast<std::size_t>(number)], 1 /* commutes */, &place->second);
    if (Status status = check(result, "make an operation"); !status.ok()) {
      made.erase(place);
      return status;
    }
  }
  *operation = place->second;
  return Status::success();
}

}  // namespace hv::mpi
