/* A program that calls MPI itself, beside hvrun.h. SPDX-License-Identifier: Apache-2.0
 *
 * own_mpi LEVEL: begins MPI with that thread level (0 to 3), then hvrun's job of all ranks.
 * own_mpi halves: a job of the ranks with even numbers, in reverse order, and one of the others.
 * own_mpi death: rank 1 is killed while the others wait for it.
 * own_mpi lags: rank 1 waits to be ended between MPI_Init and hvrun_init.
 * Each rank says in one line what came of it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hvrun/hvrun.h"

static int fail(const char* doing) {
  printf("%s: %s\n", doing, hvrun_last_error());
  fflush(stdout);
  return 1;
}

static hvrun_status sum(const char* name, float* value) {
  return hvrun_allreduce(NULL, name, value, value, 1, HVRUN_FLOAT32, HVRUN_SUM);
}

enum { kMany = 1000 };

/* Sums that do not fit, of so many that an MPI takes vectors for them. */
static int small_integers_wrap(void) {
  static uint8_t bytes[kMany];
  static int16_t words[kMany];
  for (int i = 0; i < kMany; ++i) {
    bytes[i] = 200;
    words[i] = 30000;
  }
  if (hvrun_allreduce(NULL, "b", bytes, bytes, kMany, HVRUN_UINT8, HVRUN_SUM) != HVRUN_OK ||
      hvrun_allreduce(NULL, "s", words, words, kMany, HVRUN_INT16, HVRUN_SUM) != HVRUN_OK)
    return fail("sums");
  const int ranks = hvrun_size(NULL);
  for (int i = 0; i < kMany; ++i) {
    if (bytes[i] == (uint8_t)(200 * ranks) && words[i] == (int16_t)(30000 * ranks)) continue;
    printf("sums that do not wrap: %d, %d\n", bytes[i], words[i]);
    return 1;
  }
  return 0;
}

/* More than travels in one piece; in place on the first rank only. */
static int large_tensors_are_summed(void) {
  const int64_t count = 20 << 20;
  float* const input = malloc((size_t)count * sizeof *input);
  float* const apart = malloc((size_t)count * sizeof *apart);
  float* const output = hvrun_rank(NULL) == 0 ? input : apart;
  if (input == NULL || apart == NULL) return fail("malloc");
  for (int64_t i = 0; i < count; ++i) input[i] = (float)(i & 1023);
  if (hvrun_allreduce(NULL, "l", input, output, count, HVRUN_FLOAT32, HVRUN_SUM) != HVRUN_OK)
    return fail("a large sum");
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i)
    wrong += output[i] != (float)(i & 1023) * (float)hvrun_size(NULL);
  if (wrong != 0) printf("%lld elements of a large sum are wrong\n", (long long)wrong);
  free(input);
  free(apart);
  return wrong != 0;
}

/* This rank's job is that of `ranks`, where it is not NULL. */
static int work(const MPI_Comm* ranks) {
  hvrun_options options = HVRUN_OPTIONS_INIT;
  options.mpi_communicator = ranks;
  if (hvrun_init(&options, NULL) != HVRUN_OK) return fail("init");
  float value = (float)hvrun_rank(NULL) + 1;
  if (sum("w", &value) != HVRUN_OK) return fail("sum");
  if (small_integers_wrap() != 0 || large_tensors_are_summed() != 0) return 1;
  printf("rank %d of %d (%d of %d here): %g\n", hvrun_rank(NULL), hvrun_size(NULL),
         hvrun_local_rank(NULL), hvrun_local_size(NULL), value);
  fflush(stdout);
  return hvrun_shutdown(NULL) == HVRUN_OK ? 0 : fail("shutdown");
}

/* told_by_mpi.c waits for that. */
static void tell_that_it_has_joined(void) {
  const char* alive = getenv("HVRUN_TEST_ALIVE");
  FILE* const file = alive != NULL ? fopen(alive, "a") : NULL;
  if (file == NULL) return;
  fputc('j', file);
  fclose(file);
}

static int work_until_death(int rank) {
  if (hvrun_init(NULL, NULL) != HVRUN_OK) return fail("init");
  if (rank == 1) tell_that_it_has_joined();
  for (int round = 0;; ++round) {
    if (rank == 1 && round == 100) kill(getpid(), SIGKILL);
    float value = 1;
    if (sum("w", &value) == HVRUN_OK) continue;
    fail("sum");
    hvrun_shutdown(NULL);
    return 0;
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int rank = 0, level = 0;
  const int is_level = argv[1][0] >= '0' && argv[1][0] <= '3';
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                        MPI_THREAD_MULTIPLE};
  MPI_Init_thread(&argc, &argv, levels[is_level ? argv[1][0] - '0' : 3], &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(argv[1], "death") == 0) _exit(work_until_death(rank));
  const int is_lagging = strcmp(argv[1], "lags") == 0;
  if (is_lagging && rank == 1) pause();
  int code = 0;
  if (is_level || is_lagging) {
    code = work(NULL);
  } else {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    code = work(&half);
    MPI_Comm_free(&half);
  }
  MPI_Finalize();
  return code;
}
