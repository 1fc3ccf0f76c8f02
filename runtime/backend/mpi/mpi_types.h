// MPI's types and operations for those of tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "runtime/device/element_type.h"
#include "src/base/status.h"

namespace hv::mpi {

// 16-bit and 8-bit floats and bool go as integers of their width: only operations of ours fold
// them.
MPI_Datatype datatype_of(runtime::ElementType type);

// Of elements, not Adasum; an average is a sum. MPI's own where that gives what every backend
// gives; else it folds by the kernels. Made at first use and kept.
Status operation_of(runtime::ElementType type, runtime::Reduction reduction, MPI_Op* operation);

}  // namespace hv::mpi
