/* Tensors over 4 GiB, in place where that is possible: hvrun -np 2 large_test, or on two hosts that
 * share this machine. Needs 15 GiB of memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/c/check.h"

/* Beyond 2^32 bytes of one byte each, and ending between words. */
static const int64_t kBytes = ((int64_t)1 << 32) + 4099;
enum { kFew = 4099 }; /* rows that the last rank adds */

/* Differs from what lies 2^32 places before. */
static inline uint8_t byte_at(int64_t i, int rank) {
  return (uint8_t)(i ^ i >> 8 ^ i >> 16 ^ i >> 24 ^ (i >> 32) * 13 ^ rank * 85);
}
static inline float float_at(int64_t i, int rank) {
  return (float)((i ^ i >> 10 ^ i >> 20 ^ (i >> 30) * 37) & 1023) + (float)rank;
}

static void* memory_of(int64_t bytes) {
  void* memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) return memory;
  perror("large_test: mmap");
  exit(1);
}

static void fill(uint8_t* bytes, int64_t count, int rank) {
  for (int64_t i = 0; i < count; ++i) bytes[i] = byte_at(i, rank);
}

/* The first place that is not as it should be; count when all are. */
static int64_t first_wrong(const uint8_t* bytes, int64_t count, int rank) {
  for (int64_t i = 0; i < count; ++i)
    if (bytes[i] != byte_at(i, rank)) return i;
  return count;
}

static hvrun_status carry_out(const hvrun_request* request) {
  hvrun_handle handle;
  hvrun_status status = hvrun_enqueue(NULL, request, &handle);
  if (status != HVRUN_OK) return status;
  status = hvrun_wait(NULL, handle, -1, NULL);
  hvrun_release(NULL, handle);
  return status;
}

static hvrun_status run(hvrun_operation operation, hvrun_type type, int64_t count, void* memory,
                        const void* input) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = operation;
  request.type = type;
  request.name = "large";
  if (operation == HVRUN_BROADCAST) request.root = 1;
  if (operation == HVRUN_SEND || operation == HVRUN_RECEIVE) request.root = 1 - hvrun_rank(NULL);
  request.ndim = 1;
  request.shape = &count;
  request.input = input;
  request.output = memory;
  return carry_out(&request);
}

static void bytes_are_summed(uint8_t* bytes, int rank) {
  fill(bytes, kBytes, rank);
  CHECK(run(HVRUN_ALLREDUCE, HVRUN_UINT8, kBytes, bytes, bytes) == HVRUN_OK);
  int64_t wrong = 0;
  for (int64_t i = 0; i < kBytes; ++i)
    wrong += bytes[i] != (uint8_t)(byte_at(i, 0) + byte_at(i, 1));
  CHECK(wrong == 0);
}

static void floats_are_summed(float* floats, int rank) {
  const int64_t count = kBytes / (int64_t)sizeof *floats;
  for (int64_t i = 0; i < count; ++i) floats[i] = float_at(i, rank);
  CHECK(run(HVRUN_ALLREDUCE, HVRUN_FLOAT32, count, floats, floats) == HVRUN_OK);
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) wrong += floats[i] != float_at(i, 0) + float_at(i, 1);
  CHECK(wrong == 0);
}

static void bytes_are_broadcast(uint8_t* bytes, int rank) {
  fill(bytes, kBytes, rank);
  CHECK(run(HVRUN_BROADCAST, HVRUN_UINT8, kBytes, bytes, bytes) == HVRUN_OK);
  CHECK(first_wrong(bytes, kBytes, 1) == kBytes);
}

/* Rank 0 to rank 1, whose memory held something else. */
static void bytes_are_sent(uint8_t* bytes, int rank) {
  fill(bytes, kBytes, rank == 0 ? 0 : 2);
  const hvrun_operation operation = rank == 0 ? HVRUN_SEND : HVRUN_RECEIVE;
  CHECK(run(operation, HVRUN_UINT8, kBytes, rank == 0 ? NULL : bytes, bytes) == HVRUN_OK);
  CHECK(first_wrong(bytes, kBytes, 0) == kBytes);
}

/* In place: the share, of which the second begins in the middle, comes to the front. */
static void sums_are_shared_out(uint8_t* bytes, int rank) {
  const int64_t half = kBytes / 2 + kBytes % 2, first = rank == 0 ? 0 : half;
  const int64_t mine = rank == 0 ? half : kBytes - half;
  fill(bytes, kBytes, rank);
  CHECK(run(HVRUN_REDUCESCATTER, HVRUN_UINT8, kBytes, bytes, bytes) == HVRUN_OK);
  int64_t wrong = 0;
  for (int64_t i = 0; i < mine; ++i)
    wrong += bytes[i] != (uint8_t)(byte_at(first + i, 0) + byte_at(first + i, 1));
  CHECK(wrong == 0);
}

/* The first rank gives more than 2^32 rows, so the other's begin beyond them. */
static void rows_are_gathered(uint8_t* bytes, int rank) {
  const int64_t mine = rank == 0 ? kBytes : kFew;
  uint8_t* const place = rank == 0 ? bytes : bytes + kBytes;
  fill(place, mine, rank);
  CHECK(run(HVRUN_ALLGATHER, HVRUN_UINT8, mine, bytes, place) == HVRUN_OK);
  CHECK(first_wrong(bytes, kBytes, 0) == kBytes);
  CHECK(first_wrong(bytes + kBytes, kFew, 1) == kFew);
}

/* The sender gives the other more than 2^32 rows, and few to itself: before those when it is rank
 * 0; behind them, and so beyond 2^32, when it is rank 1. The other gives it few. */
static void rows_are_exchanged(uint8_t* bytes, int rank, int sender) {
  const int receiver = 1 - sender, is_sender = rank == sender;
  const int64_t to_receiver = sender == 0 ? kFew : 0, to_itself = sender == 0 ? 0 : kBytes;
  const int64_t rows = is_sender ? kBytes + kFew : kFew;
  uint8_t* const input = is_sender ? bytes : bytes + kBytes;
  uint8_t few[2 * kFew];
  int64_t splits[2] = {kFew, kFew}, wrong = 0;
  splits[receiver] = is_sender ? kBytes : 0;
  fill(input, rows, rank);
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLTOALL;
  request.type = HVRUN_UINT8;
  request.name = "large exchange";
  request.ndim = 1;
  request.shape = &rows;
  request.input = input;
  request.output = is_sender ? few : bytes;
  request.output_bytes = is_sender ? sizeof few : (size_t)kBytes;
  request.splits = splits;
  request.split_count = 2;
  CHECK(carry_out(&request) == HVRUN_OK);
  for (int64_t i = 0; !is_sender && i < kBytes; ++i)
    wrong += bytes[i] != byte_at(to_receiver + i, sender);
  for (int64_t i = 0; is_sender && i < kFew; ++i) {
    wrong += few[sender * kFew + i] != byte_at(to_itself + i, sender);
    wrong += few[receiver * kFew + i] != byte_at(i, receiver);
  }
  CHECK(wrong == 0);
}

int main(void) {
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "%s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL);
  CHECK(hvrun_size(NULL) == 2);
  uint8_t* const memory = memory_of(kBytes + kFew);
  bytes_are_summed(memory, rank);
  floats_are_summed((float*)(void*)memory, rank);
  bytes_are_broadcast(memory, rank);
  bytes_are_sent(memory, rank);
  sums_are_shared_out(memory, rank);
  rows_are_gathered(memory, rank);
  rows_are_exchanged(memory, rank, 0);
  rows_are_exchanged(memory, rank, 1);
  munmap(memory, (size_t)(kBytes + kFew));
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  if (failures == 0) printf("rank %d: all is as it should be\n", rank);
  return failures > 0;
}
