/* An MPI of a lower thread level than is asked for: loaded before it (LD_PRELOAD), with the level
 * in TEST_MPI_LEVEL, 1 (MPI_THREAD_FUNNELED) or 2 (MPI_THREAD_SERIALIZED).
 * SPDX-License-Identifier: Apache-2.0
 *
 * It holds the process to that: who begins, asks after or ends something where it may not is told
 * of, and ends the process. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int level = MPI_THREAD_MULTIPLE;
static pthread_t beginner;
static int inside; /* threads that are in MPI now */

static void breach(const char* call) {
  fprintf(stderr, "%s is called where MPI does not allow it\n", call);
  fflush(stderr);
  _exit(99);
}

static void enter(const char* call) {
  if (level == MPI_THREAD_FUNNELED && !pthread_equal(pthread_self(), beginner)) breach(call);
  if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 1) breach(call);
}

static int leave(int code) {
  __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
  return code;
}

#pragma GCC visibility push(default) /* of what stands before MPI's own */

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const char* const wanted = getenv("TEST_MPI_LEVEL");
  if (wanted != NULL) level = wanted[0] == '1' ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED;
  if (required < level) level = required;
  beginner = pthread_self();
  return PMPI_Init_thread(argc, argv, level, provided);
}

#define GUARDED(name, parameters, arguments) \
  int name parameters {                      \
    enter(#name);                            \
    return leave(P##name arguments);         \
  }

GUARDED(MPI_Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))
GUARDED(MPI_Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made),
        (comm, group, tag, made))
GUARDED(MPI_Comm_free, (MPI_Comm * comm), (comm))
GUARDED(MPI_Iallreduce,
        (const void* from, void* to, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm,
         MPI_Request* request),
        (from, to, count, type, operation, comm, request))
GUARDED(MPI_Isend,
        (const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
         MPI_Request* request),
        (from, count, type, to, tag, comm, request))
GUARDED(MPI_Irecv,
        (void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Request* request),
        (to, count, type, from, tag, comm, request))
GUARDED(MPI_Finalize, (void), ())
