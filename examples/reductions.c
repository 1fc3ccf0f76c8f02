/* What can be done to numbers on their way: other reductions than the sum, scales, compression,
 * groups, work while they travel, memory of the library, and averages over those ranks that still
 * have data. Checks every result.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cc reductions.c -o reductions $(pkg-config --cflags --libs hvrun) \
 *     -Wl,-rpath,$(pkg-config --variable=libdir hvrun)
 *   hvrun -np 4 ./reductions
 */
#include <hvrun/hvrun.h>
#include <stdio.h>
#include <stdlib.h>

static void check(hvrun_status status) {
  if (status == HVRUN_OK) return;
  fprintf(stderr, "reductions: %s\n", hvrun_last_error());
  exit(1);
}

static void expect(int is_true, const char* what) {
  if (is_true) return;
  fprintf(stderr, "reductions: rank %d: %s\n", hvrun_rank(NULL), what);
  exit(1);
}

/* An allreduce of count numbers in place; the caller fills in what is special about it. */
static hvrun_request reduction_of(const char* name, float* numbers, const int64_t* count) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.type = HVRUN_FLOAT32;
  request.name = name;
  request.ndim = 1;
  request.shape = count;
  request.input = numbers;
  request.output = numbers;
  return request;
}

static void run(const hvrun_request* request) {
  hvrun_handle handle;
  check(hvrun_enqueue(NULL, request, &handle));
  check(hvrun_wait(NULL, handle, -1, NULL));
  check(hvrun_release(NULL, handle));
}

static float reduced(hvrun_reduction reduction, float number) {
  check(hvrun_allreduce(NULL, "one number", &number, &number, 1, HVRUN_FLOAT32, reduction));
  return number;
}

static void smallest_largest_and_product(int rank, int size) {
  float power = 1;
  for (int i = 0; i < size; ++i) power *= 2;
  expect(reduced(HVRUN_MIN, (float)rank) == 0, "the smallest");
  expect(reduced(HVRUN_MAX, (float)rank) == (float)(size - 1), "the largest");
  expect(reduced(HVRUN_PRODUCT, 2) == power, "the product");
}

/* Each rank's number is halved before the sum, and the sum is multiplied by 4. */
static void scaled_sum(int size) {
  const int64_t one = 1;
  float number = 3;
  hvrun_request request = reduction_of("scaled", &number, &one);
  request.prescale = 0.5;
  request.postscale = 4;
  run(&request);
  expect(number == (float)size * 6, "the scaled sum");
}

/* Half the bytes move, and the result is as exact as 16 bits are: fp16 keeps 11 bits of a number,
 * bf16 8, but as large ones as float32. It is the same on every rank. */
static void compressed_average(hvrun_compression compression, float least, float most) {
  const int64_t one = 1;
  float third = 1.0f / 3;
  hvrun_request request = reduction_of("compressed", &third, &one);
  request.reduction = HVRUN_AVERAGE;
  request.compression = compression;
  run(&request);
  expect(third > least && third < most, "the compressed average");
  expect(reduced(HVRUN_MIN, third) == reduced(HVRUN_MAX, third), "the same on every rank");
}

/* Three gradients of one layer: they travel when all of them are there, and would fail as one. */
static void grouped_sums(int rank, int size) {
  const int64_t one = 1;
  const char* const names[3] = {"layer/q", "layer/k", "layer/v"};
  float gradients[3] = {1, 2, 3};
  hvrun_handle handles[3];
  for (int i = 0; i < 3; ++i) {
    const int which = (i + rank) % 3; /* each rank in an order of its own */
    hvrun_request request = reduction_of(names[which], &gradients[which], &one);
    request.group = 1;
    request.group_size = 3;
    check(hvrun_enqueue(NULL, &request, &handles[which]));
  }
  for (int i = 0; i < 3; ++i) {
    check(hvrun_wait(NULL, handles[i], -1, NULL));
    check(hvrun_release(NULL, handles[i]));
    expect(gradients[i] == (float)(size * (i + 1)), "a sum of the group");
  }
}

/* Other work goes on while the sum is made, for as long as there is some and hvrun_poll says that
 * it is not complete. Then waits in slices: after each the program may look at a clock or a signal.
 */
static void work_while_it_travels(int size) {
  const int64_t one = 1;
  float number = 1;
  double work = 0;
  int pieces_of_work = 1000;
  hvrun_handle handle;
  const hvrun_request request = reduction_of("on its way", &number, &one);
  check(hvrun_enqueue(NULL, &request, &handle));
  hvrun_status status = hvrun_poll(NULL, handle);
  while (status == HVRUN_IN_PROGRESS && pieces_of_work-- > 0) {
    for (int i = 1; i <= 1000; ++i) work += 1.0 / i;
    status = hvrun_poll(NULL, handle);
  }
  while (status == HVRUN_IN_PROGRESS) status = hvrun_wait(NULL, handle, 0.1, NULL);
  check(status); /* the operation's */
  expect(number == (float)size && work >= 0, "the sum made meanwhile");
  check(hvrun_release(NULL, handle));
}

/* Gradients at right angles are added. They lie in memory that the host's ranks all reach. */
static void adaptive_sum(int rank, int size) {
  const int64_t count = size;
  void* memory = NULL;
  check(hvrun_alloc(NULL, (size_t)size * sizeof(float), &memory));
  float* const gradient = memory;
  for (int i = 0; i < size; ++i) gradient[i] = i == rank ? 1.0f : 0.0f;
  hvrun_request request = reduction_of("adasum", gradient, &count);
  request.reduction = HVRUN_ADASUM;
  run(&request);
  for (int i = 0; i < size; ++i)
    expect(gradient[i] > 0.999f && gradient[i] < 1.001f, "the adaptive sum");
  check(hvrun_free(memory));
}

/* Rank r has r + 1 batches. Who has none left joins, and no longer counts in the average. */
static void averages_of_those_with_data(int rank, int size) {
  const int64_t one = 1;
  int32_t last = -1;
  for (int batch = 0; batch <= rank; ++batch) {
    float gradient = (float)batch;
    hvrun_request request = reduction_of("gradient", &gradient, &one);
    request.reduction = HVRUN_AVERAGE;
    request.flags = HVRUN_AVERAGE_PRESENT;
    run(&request);
    expect(gradient == (float)batch, "the average of those that have data");
  }
  check(hvrun_join(NULL, &last));
  expect(last == size - 1, "the rank that joined last");
}

int main(void) {
  check(hvrun_init(NULL, NULL));
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  smallest_largest_and_product(rank, size);
  scaled_sum(size);
  compressed_average(HVRUN_COMPRESSION_FP16, 0.333f, 0.334f);
  compressed_average(HVRUN_COMPRESSION_BF16, 0.332f, 0.335f);
  grouped_sums(rank, size);
  work_while_it_travels(size);
  adaptive_sum(rank, size);
  averages_of_those_with_data(rank, size);
  printf("rank %d of %d: every reduction is right\n", rank, size);
  check(hvrun_shutdown(NULL));
  return 0;
}
