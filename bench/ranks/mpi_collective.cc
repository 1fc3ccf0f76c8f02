// The peer of collective_layer and of engine: the same timing of an MPI's own calls. Started by its
// mpirun.
// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "bench/ranks/timing.h"

namespace {

void run(const bench::Operation& operation, const float* input, float* output, int root,
         bool in_place) {
  const int whole = static_cast<int>(operation.whole), part = static_cast<int>(operation.part);
  if (operation.name == "allreduce")
    MPI_Allreduce(in_place ? MPI_IN_PLACE : input, output, whole, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  else if (operation.name == "allgather")
    MPI_Allgather(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
  else if (operation.name == "broadcast")
    MPI_Bcast(output, whole, MPI_FLOAT, root, MPI_COMM_WORLD);
  else if (operation.name == "alltoall")
    MPI_Alltoall(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
  else if (operation.name == "exchange")
    MPI_Sendrecv(input, whole, MPI_FLOAT, operation.other(), 0, output, whole, MPI_FLOAT,
                 operation.other(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Reduce_scatter_block(input, output, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

#ifdef OMPI_MAJOR_VERSION
constexpr const char* kLibrary = "openmpi";
#else
constexpr const char* kLibrary = "mpich";
#endif

}  // namespace

int main(int argc, char** argv) {
  const hv::TimePoint start = hv::now();
  MPI_Init(&argc, &argv);
  double init_seconds = hv::seconds_since(start);
  const bench::Options options = bench::parse(argc, argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bench::Calls calls;
  calls.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  calls.run = [&](const bench::Operation& operation, const float* input, float* output, int root) {
    run(operation, input, output, root, options.in_place);
  };
  calls.take_greatest = [](double* values, std::size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
  };
  calls.exit = [](int code) { MPI_Abort(MPI_COMM_WORLD, code); };
  if (options.init) {
    calls.take_greatest(&init_seconds, 1);
    if (rank == 0) bench::print(options, kLibrary, "init", ranks, 0, {init_seconds});
  } else {
    bench::time_all(calls, options, kLibrary, ranks, rank);
  }
  MPI_Finalize();
}
