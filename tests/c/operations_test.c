/* Reducescatter and alltoall from C: hvrun -np N operations_test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/c/check.h"

enum { kColumns = 3 };

static hvrun_request request_of(hvrun_operation operation, const char* name, const int64_t* shape,
                                const void* input, void* output) {
  hvrun_request request = sum_of(name, shape, 2, input, output);
  request.operation = operation;
  request.type = HVRUN_INT32;
  return request;
}

static int64_t own_rows(int64_t rows, int rank, int size) {
  return rows / size + (rank < rows % size);
}

static int64_t first_row(int64_t rows, int rank, int size) {
  int64_t first = 0;
  for (int before = 0; before < rank; ++before) first += own_rows(rows, before, size);
  return first;
}

/* Row r of rank p holds 100 p + r in every column. */
static int32_t* table_of(int64_t rows, int rank) {
  int32_t* table = malloc((size_t)(rows * kColumns + 1) * sizeof *table);
  for (int64_t row = 0; row < rows; ++row)
    for (int column = 0; column < kColumns; ++column)
      table[row * kColumns + column] = (int32_t)(100 * rank + row);
  return table;
}

static void sums_are_shared_out_by_rows(int64_t rows, int rank, int size) {
  int32_t* table = table_of(rows, rank);
  const int64_t shape[2] = {rows, kColumns};
  const int64_t mine = own_rows(rows, rank, size), first = first_row(rows, rank, size);
  hvrun_request request = request_of(HVRUN_REDUCESCATTER, "rows", shape, table, NULL);
  for (int round = 0; round < 3; ++round) {
    if (round == 2) request.output = table; /* in place: the share comes to the front */
    hvrun_handle handle;
    hvrun_result result = HVRUN_RESULT_INIT;
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
    CHECK(result.ndim == 2 && result.shape[0] == mine && result.shape[1] == kColumns);
    CHECK(result.bytes == (size_t)mine * kColumns * sizeof(int32_t));
    CHECK(result.received_split_count == 0);
    const int32_t* got = round == 2 ? table : result.data;
    for (int64_t i = 0; i < mine * kColumns; ++i)
      CHECK(got[i] == 50 * size * (size - 1) + size * (first + i / kColumns));
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  }
  free(table);
}

static void a_scattered_average_truncates(int rank, int size) {
  int32_t* values = malloc((size_t)size * sizeof *values);
  for (int i = 0; i < size; ++i) values[i] = rank == 0 ? -size - 1 : 0;
  int32_t share = 77;
  const int64_t shape[1] = {size};
  hvrun_request request = sum_of("average", shape, 1, values, &share);
  request.operation = HVRUN_REDUCESCATTER;
  request.type = HVRUN_INT32;
  request.reduction = HVRUN_AVERAGE;
  hvrun_handle handle;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  CHECK(share == (size == 1 ? -2 : -1));
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  free(values);
}

/* A scalar is one row: rank 0 has it, the others nothing. */
static void a_scalar_is_a_row(int rank, int size) {
  int32_t one = 1, sum = 0;
  hvrun_request request = sum_of("scalar", NULL, 0, &one, &sum);
  request.operation = HVRUN_REDUCESCATTER;
  request.type = HVRUN_INT32;
  hvrun_handle handle;
  hvrun_result result = HVRUN_RESULT_INIT;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  CHECK(result.shape[0] == (rank == 0) && sum == (rank == 0 ? size : 0));
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

/* Rank p sends p + d + 1 rows to rank d. */
static void rows_go_where_the_splits_say(int rank, int size) {
  int64_t* splits = malloc((size_t)size * sizeof *splits);
  int64_t rows = 0, expected_rows = 0;
  for (int to = 0; to < size; ++to) rows += splits[to] = rank + to + 1;
  for (int from = 0; from < size; ++from) expected_rows += from + rank + 1;
  const int64_t shape[2] = {rows, kColumns};
  const size_t expected_bytes = (size_t)expected_rows * kColumns * sizeof(int32_t);
  for (int round = 0; round < 3; ++round) {
    const int64_t room = rows > expected_rows ? rows : expected_rows;
    int32_t* table = table_of(rows, rank);
    table = realloc(table, (size_t)room * kColumns * sizeof *table);
    hvrun_request request = request_of(HVRUN_ALLTOALL, "exchange", shape, table, NULL);
    request.splits = splits;
    request.split_count = (size_t)size;
    if (round == 1) request.output = table;
    if (round == 2) request.output = malloc(expected_bytes);
    if (round == 2) request.output_bytes = expected_bytes;
    hvrun_handle handle;
    hvrun_result result = HVRUN_RESULT_INIT;
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
    CHECK(result.shape[0] == expected_rows && result.bytes == expected_bytes);
    CHECK(request.output == NULL || result.data == request.output);
    CHECK(result.received_split_count == (size_t)size);
    const int32_t* got = result.data;
    for (int from = 0; from < size; ++from) {
      CHECK(result.received_splits[from] == from + rank + 1);
      int64_t row = 0; /* of the sender's: behind those for the ranks before this one */
      for (int to = 0; to < rank; ++to) row += from + to + 1;
      for (int64_t i = 0; i < from + rank + 1; ++i, ++row, got += kColumns)
        CHECK(got[0] == 100 * from + row && got[kColumns - 1] == got[0]);
    }
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
    if (round == 2) free(request.output);
    free(table);
  }
  free(splits);
}

static void without_splits_all_get_the_same(int rank, int size) {
  const int64_t shape[2] = {2 * size, kColumns};
  int32_t* table = table_of(2 * size, rank);
  hvrun_request request = request_of(HVRUN_ALLTOALL, "even", shape, table, table);
  hvrun_handle handle;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  for (int row = 0; row < 2 * size; ++row)
    CHECK(table[row * kColumns] == 100 * (row / 2) + 2 * rank + row % 2);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  free(table);
}

/* The peers have what they asked for; only the rank whose room is too small is told. */
static void too_little_room_is_told_to_who_gave_it(int rank, int size) {
  const int64_t shape[2] = {size, kColumns};
  int32_t* table = table_of(size, rank);
  int32_t small[1] = {0};
  hvrun_request request = request_of(HVRUN_ALLTOALL, "small", shape, table, NULL);
  if (rank == 0) {
    request.output = small;
    request.output_bytes = sizeof small;
  }
  hvrun_handle handle;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  const hvrun_status status = hvrun_wait(NULL, handle, -1, NULL);
  CHECK(status == (rank == 0 ? HVRUN_ERROR_ARGUMENT : HVRUN_OK));
  if (rank == 0) CHECK_SAYS("output_bytes is 4");
  CHECK(small[0] == 0);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  free(table);
}

/* Rows without bytes are counted all the same; and no rows at all are none from everybody. */
static void empty_rows_are_counted(int rank, int size) {
  for (int64_t each = 0; each < 2; ++each) {
    const int64_t shape[2] = {each * size, 0};
    hvrun_request request = request_of(HVRUN_ALLTOALL, "empty", shape, NULL, NULL);
    hvrun_handle handle;
    hvrun_result result = HVRUN_RESULT_INIT;
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
    CHECK(result.shape[0] == each * size && result.bytes == 0);
    CHECK(result.received_split_count == (size_t)size);
    CHECK(result.received_splits[rank] == each);
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  }
}

static void wrong_splits_are_refused_at_once(int size) {
  int64_t splits[65] = {0};
  int32_t row[2 * kColumns] = {0};
  const int64_t shape[2] = {2, kColumns};
  hvrun_request request = request_of(HVRUN_ALLTOALL, "wrong", shape, row, NULL);
  hvrun_handle handle;
  request.splits = splits;
  request.split_count = (size_t)size;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("the splits have 0 rows, the input 2");
  splits[0] = 3;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("the splits have 3 rows, the input 2");
  splits[0] = -1;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("split 0 is -1");
  splits[0] = 2;
  request.split_count = (size_t)size + 1;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("splits for the");
  request.splits = NULL;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("splits is NULL");
  request.splits = splits;
  request.operation = HVRUN_ALLGATHER;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("only an alltoall has splits");
  if (size < 3) return;
  request = request_of(HVRUN_ALLTOALL, "uneven", shape, row, NULL);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("2 rows cannot be cut equally");
}

/* Between the blocks' ends, and over many of them. */
static void large_ones_come_through(int rank, int size) {
  const int64_t rows = 200003;
  sums_are_shared_out_by_rows(rows, rank, size);
  const int64_t shape[2] = {rows * size, kColumns};
  int32_t* table = table_of(rows * size, rank);
  hvrun_request request = request_of(HVRUN_ALLTOALL, "large", shape, table, NULL);
  hvrun_handle handle;
  hvrun_result result = HVRUN_RESULT_INIT;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  const int32_t* got = result.data; /* NULL where the wait has failed: told already */
  int64_t wrong = 0;
  for (int64_t row = 0; got && row < rows * size; ++row)
    wrong += got[row * kColumns + 1] != 100 * (row / rows) + rank * rows + row % rows;
  CHECK(wrong == 0);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  free(table);
}

static int32_t joined_by_request(void) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  hvrun_result result = HVRUN_RESULT_INIT;
  hvrun_handle handle;
  request.operation = HVRUN_JOIN;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  const int32_t last_joined = result.last_joined;
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  return last_joined;
}

static int32_t joined_by_call(void) {
  int32_t last_joined = -7;
  CHECK(hvrun_join(NULL, &last_joined) == HVRUN_OK);
  return last_joined;
}

/* A sum that one rank alone asks for is complete when all others have joined: so it is the last,
 * whichever rank it is. */
static void all_learn_who_joined_last(int rank, int size) {
  for (int last = 0; last < size; ++last) {
    for (int round = 0; round < 2; ++round) {
      float value = 3;
      const hvrun_request request = sum_of("alone", NULL, 0, &value, &value);
      hvrun_handle handle;
      hvrun_result result = HVRUN_RESULT_INIT;
      if (rank == last) {
        CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
        CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
        CHECK(value == 3 && result.last_joined == -1);
        CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
      }
      CHECK((round == 0 ? joined_by_call() : joined_by_request()) == last);
    }
  }
  CHECK(hvrun_join(NULL, NULL) == HVRUN_OK);
}

int main(void) {
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "%s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  for (int64_t rows = 0; rows < 9; ++rows) sums_are_shared_out_by_rows(rows, rank, size);
  a_scattered_average_truncates(rank, size);
  a_scalar_is_a_row(rank, size);
  rows_go_where_the_splits_say(rank, size);
  without_splits_all_get_the_same(rank, size);
  too_little_room_is_told_to_who_gave_it(rank, size);
  empty_rows_are_counted(rank, size);
  wrong_splits_are_refused_at_once(size);
  all_learn_who_joined_last(rank, size);
  large_ones_come_through(rank, size);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  if (failures == 0) printf("rank %d: all is as it should be\n", rank);
  return failures > 0;
}
