/* An MPI that takes 130 ms to make a communicator: loaded before it (LD_PRELOAD).
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <time.h>

#pragma GCC visibility push(default) /* of what stands before MPI's own */

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  const struct timespec long_time = {0, 130000000};
  nanosleep(&long_time, NULL); /* sleep-ok: that it takes long is the point */
  return PMPI_Comm_create_group(comm, group, tag, made);
}
