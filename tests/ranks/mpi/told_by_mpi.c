/* An MPI under which rank 1 dies in the middle of a collective, and which returns an error as soon
 * as it has, as one does whose connection to it ends: loaded before it (LD_PRELOAD).
 * HVRUN_TEST_ALIVE: a file that rank 1 holds locked, and writes a byte to once it has joined.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* of what stands before MPI's own */

enum { kCallsOfRank1 = 50 };
static int file = -1, calls = 0, is_rank_1 = 0, was_alive = 0;

static int has_died(void) {
  if (file < 0) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL) rank = getenv("PMI_RANK");
    is_rank_1 = rank != NULL && strcmp(rank, "1") == 0;
    file = open(getenv("HVRUN_TEST_ALIVE"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) abort();
    if (is_rank_1 && flock(file, LOCK_EX) != 0) abort();
  }
  if (is_rank_1) {
    struct stat state;
    if (fstat(file, &state) != 0 || state.st_size == 0) return 0; /* others may keep it waiting */
    return ++calls == kCallsOfRank1 ? kill(getpid(), SIGKILL) : 0;
  }
  if (flock(file, LOCK_SH | LOCK_NB) != 0) {
    was_alive = 1;
    return 0;
  }
  if (!was_alive) flock(file, LOCK_UN); /* it has not come yet */
  return was_alive;
}

int MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status) {
  if (!has_died()) return PMPI_Test(request, is_done, status);
  *is_done = 0;
  return MPI_ERR_OTHER;
}
