// The peer of collective_allreduce: the same timing of MPI_Allreduce. Started by mpirun.
// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/allreduce_options.h"

namespace {

std::vector<double> time_size(const bench::Options& options, int rank, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  bench::Buffer input(count, static_cast<float>(rank + 1)), output(count, 0);
  const int repetitions = options.repetitions(bytes);
  std::vector<double> seconds;
  for (int i = -repetitions / 4 - 1; i < repetitions; ++i) {
    if (options.in_place) input.fill(static_cast<float>(rank + 1));
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int k = 0; k < options.batch(bytes); ++k) {
      if (options.in_place)
        MPI_Allreduce(MPI_IN_PLACE, input.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      else
        MPI_Allreduce(input.data(), output.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
    }
    if (i >= 0) seconds.push_back((MPI_Wtime() - start) / options.batch(bytes));
  }
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bench::Options options = bench::parse(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &options.ranks);
  for (const std::size_t bytes : options.sizes) {
    const auto seconds = time_size(options, rank, bytes);
    if (rank == 0) bench::print(options, "openmpi", bytes, seconds);
  }
  MPI_Finalize();
}
