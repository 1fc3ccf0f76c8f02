/* An MPI program that knows nothing of hvrun. SPDX-License-Identifier: Apache-2.0
 *
 * wired: each rank says who it is, and the sum that it got over MPI.
 * wired killed | abort: then rank 1 kills itself, or calls MPI_Abort with 7, while the others wait.
 * wired late: rank 1 does not begin MPI but ends with 5; wired absent: with 0.
 * wired leaves: rank 1 ends with 0 and without MPI_Finalize, while the others wait.
 * wired program: also which of the job's programs it is of.
 * wired stay: then every rank waits to be ended.
 * wired never | lingers: rank 1 waits to be ended before MPI_Init, or before MPI_Finalize. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_rank_1(void) {
  const char* rank = getenv("HVRUN_RANK");
  return rank != NULL && strcmp(rank, "1") == 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "late") == 0 && is_rank_1()) return 5;
  if (strcmp(what, "absent") == 0 && is_rank_1()) return 0;
  if (strcmp(what, "never") == 0 && is_rank_1()) pause();
  MPI_Init(&argc, &argv);
  int rank, size, local_rank, local_size, sum;
  MPI_Comm here;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &local_rank);
  MPI_Comm_size(here, &local_size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d, %d of %d here: %d\n", rank, size, local_rank, local_size, sum);
  if (strcmp(what, "program") == 0) {
    int *program, is_told;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &program, &is_told);
    printf("rank %d is of program %d\n", rank, is_told ? *program : -1);
  }
  fflush(stdout);
  if (strcmp(what, "killed") == 0 && rank == 1) raise(SIGKILL);
  if (strcmp(what, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(what, "stay") == 0) pause();
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "leaves") == 0 && rank == 1) _exit(0);
  if (strcmp(what, "lingers") == 0 && rank == 1) pause();
  MPI_Finalize();
  return 0;
}
