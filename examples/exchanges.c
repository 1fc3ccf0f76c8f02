/* Rows that change hands: as many to each rank as one likes, shares of sums, the few rows of a
 * large table that changed, several exchanges that travel as one, and teams that are there from the
 * start; and what one sees of it. Checks every result.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cc exchanges.c -o exchanges $(pkg-config --cflags --libs hvrun) \
 *     -Wl,-rpath,$(pkg-config --variable=libdir hvrun)
 *   hvrun -np 4 ./exchanges
 *
 * With a timeline of each rank: hvrun -np 4 ./exchanges 'timeline-%r.json'
 */
#include <hvrun/hvrun.h>
#include <stdio.h>
#include <stdlib.h>

static void check(hvrun_status status) {
  if (status == HVRUN_OK) return;
  fprintf(stderr, "exchanges: %s\n", hvrun_last_error());
  exit(1);
}

static void expect(int is_true, const char* what) {
  if (is_true) return;
  fprintf(stderr, "exchanges: rank %d: %s\n", hvrun_rank(NULL), what);
  exit(1);
}

/* So many rows of one number each; the library owns the result. */
static hvrun_request exchange_of(hvrun_operation operation, const char* name, const int32_t* rows,
                                 const int64_t* count) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = operation;
  request.type = HVRUN_INT32;
  request.name = name;
  request.ndim = 1;
  request.shape = count;
  request.input = rows;
  return request;
}

static int32_t* filled(int64_t count, int32_t number) {
  int32_t* const rows = malloc((size_t)count * sizeof *rows);
  expect(rows != NULL, "memory");
  for (int64_t i = 0; i < count; ++i) rows[i] = number;
  return rows;
}

/* Rank r gets r + 1 rows from each, and learns how many came from whom. */
static void uneven_rows_to_each(int rank, int size) {
  const int64_t count = (int64_t)size * (size + 1) / 2;
  int32_t* const rows = filled(count, rank);
  int64_t* const splits = malloc((size_t)size * sizeof *splits);
  hvrun_result result = HVRUN_RESULT_INIT;
  hvrun_handle handle;
  expect(splits != NULL, "memory");
  for (int to = 0; to < size; ++to) splits[to] = to + 1;
  hvrun_request request = exchange_of(HVRUN_ALLTOALL, "rows to each", rows, &count);
  request.splits = splits;
  request.split_count = (size_t)size;
  check(hvrun_enqueue(NULL, &request, &handle));
  check(hvrun_wait(NULL, handle, -1, &result));
  expect(result.received_split_count == (size_t)size, "a split from each rank");
  const int32_t* received = result.data;
  for (int from = 0; from < size; ++from) {
    expect(result.received_splits[from] == rank + 1, "as many rows as this rank was given");
    for (int row = 0; row <= rank; ++row) expect(*received++ == from, "the sender's rows");
  }
  check(hvrun_release(NULL, handle)); /* and the result with it */
  free(splits);
  free(rows);
}

/* One row more than there are ranks: rank 0 gets two rows of the sums, the others one. */
static void uneven_shares_of_sums(int rank, int size) {
  const int64_t rows = (int64_t)size + 1;
  int32_t* const mine = filled(rows, 0);
  for (int64_t row = 0; row < rows; ++row) mine[row] = (int32_t)row;
  const hvrun_request request = exchange_of(HVRUN_REDUCESCATTER, "uneven shares", mine, &rows);
  hvrun_result result = HVRUN_RESULT_INIT;
  hvrun_handle handle;
  check(hvrun_enqueue(NULL, &request, &handle));
  check(hvrun_wait(NULL, handle, -1, &result));
  const int32_t* const sums = result.data;
  const int first = rank == 0 ? 0 : rank + 1;
  expect(result.shape[0] == (rank == 0 ? 2 : 1), "one row more for the first rank");
  for (int i = 0; i < result.shape[0]; ++i) expect(sums[i] == size * (first + i), "a row's sum");
  check(hvrun_release(NULL, handle));
  free(mine);
}

/* The gradient of an embedding: each rank has used its own row twice, and the last row, which all
 * share, once. Rows of one index count together, within a rank and among ranks: whoever applies
 * them adds them up. */
static void few_rows_of_a_table(int rank, int size) {
  const int64_t count = 3;
  const int32_t gradients[3] = {1, 2, 10}, indices[3] = {rank, rank, size};
  int32_t* const table = filled((int64_t)size + 1, 0);
  hvrun_request request = exchange_of(HVRUN_SPARSE_ALLREDUCE, "embedding", gradients, &count);
  hvrun_result result = HVRUN_RESULT_INIT;
  hvrun_handle handle;
  request.index_type = HVRUN_INT32;
  request.indices = indices;
  check(hvrun_enqueue(NULL, &request, &handle));
  check(hvrun_wait(NULL, handle, -1, &result));
  const int32_t *const rows = result.data, *const rows_of = result.indices;
  expect(result.shape[0] == 3 * (int64_t)size, "three rows of each rank");
  for (int64_t i = 0; i < result.shape[0]; ++i) table[rows_of[i]] += rows[i];
  for (int row = 0; row < size; ++row) expect(table[row] == 3, "both rows of one rank");
  expect(table[size] == 10 * size, "a row of each rank");
  check(hvrun_release(NULL, handle));
  free(table);
}

/* An allgather and a reducescatter that travel, and would fail, as one. */
static void a_group(int rank, int size) {
  const int64_t own = rank + 1, all = size;
  int32_t *const mine = filled(own, rank), *const ones = filled(all, 1);
  hvrun_request gather = exchange_of(HVRUN_ALLGATHER, "step/rows", mine, &own);
  hvrun_request scatter = exchange_of(HVRUN_REDUCESCATTER, "step/sums", ones, &all);
  hvrun_result gathered = HVRUN_RESULT_INIT, sums = HVRUN_RESULT_INIT;
  hvrun_handle first, second;
  gather.group = scatter.group = 1;
  gather.group_size = scatter.group_size = 2;
  check(hvrun_enqueue(NULL, &gather, &first));
  check(hvrun_enqueue(NULL, &scatter, &second));
  check(hvrun_wait(NULL, first, -1, &gathered));
  check(hvrun_wait(NULL, second, -1, &sums));
  const int32_t* row = gathered.data;
  expect(gathered.shape[0] == all * (all + 1) / 2, "the rows of all ranks");
  for (int from = 0; from < size; ++from)
    for (int i = 0; i <= from; ++i) expect(*row++ == from, "rank by rank");
  expect(sums.shape[0] == 1 && *(const int32_t*)sums.data == size, "one row of the sums");
  check(hvrun_release(NULL, first));
  check(hvrun_release(NULL, second));
  free(mine);
  free(ones);
}

/* A context of its own, whose process sets are there when hvrun_init returns: all ranks but the
 * last are set 1, and the last one alone is set 2. */
static void teams_from_the_start(int rank, int size) {
  int32_t* const ranks = filled(size, 0);
  for (int i = 0; i < size; ++i) ranks[i] = i;
  const hvrun_rank_list lists[2] = {{ranks, (size_t)size - 1}, {ranks + size - 1, 1}};
  hvrun_options options = HVRUN_OPTIONS_INIT;
  hvrun_context* context = NULL;
  options.process_sets = lists;
  options.process_set_count = 2;
  check(hvrun_init(&options, &context));
  const int is_last = rank == size - 1;
  const int64_t one = 1;
  int32_t members = 1;
  hvrun_handle handle;
  hvrun_request request = exchange_of(HVRUN_ALLREDUCE, "members", &members, &one);
  request.output = &members;
  request.process_set = is_last ? 2 : 1;
  check(hvrun_enqueue(context, &request, &handle));
  check(hvrun_wait(context, handle, -1, NULL));
  expect(members == (is_last ? 1 : size - 1), "the members of the team");
  check(hvrun_release(context, handle));
  check(hvrun_barrier(context)); /* who leaves ends what the others have not begun */
  check(hvrun_shutdown(context));
  free(ranks);
}

int main(int argc, char** argv) {
  hvrun_counters counters = HVRUN_COUNTERS_INIT;
  check(hvrun_init(NULL, NULL));
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  if (argc > 1) check(hvrun_timeline_start(NULL, argv[1]));
  uneven_rows_to_each(rank, size);
  uneven_shares_of_sums(rank, size);
  few_rows_of_a_table(rank, size);
  a_group(rank, size);
  check(hvrun_timeline_stop(NULL));
  if (size > 1) teams_from_the_start(rank, size);
  check(hvrun_counters_read(NULL, &counters));
  expect(counters.operations_completed == 5 && counters.operations_failed == 0, "five operations");
  printf("rank %d of %d: every exchange is right\n", rank, size);
  check(hvrun_shutdown(NULL));
  return 0;
}
