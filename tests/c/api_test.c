/* Tests of hvrun.h from C, by a program that is alone: rank 0 of 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/c/check.h"

static void nothing_works_before_init(void) {
  float value = 1;
  CHECK(hvrun_rank(NULL) == -1);
  CHECK(hvrun_size(NULL) == -1);
  CHECK(hvrun_allreduce(NULL, "x", &value, &value, 1, HVRUN_FLOAT32, HVRUN_SUM) ==
        HVRUN_ERROR_SHUTDOWN);
  CHECK_SAYS("hvrun_init");
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
}

/* In a child: what init says in this environment, as the exit code. */
static int init_with(const char* name, const char* value, const char* words) {
  const pid_t child = fork();
  int state = 0;
  if (child == 0) {
    setenv(name, value, 1);
    const int status = (int)hvrun_init(NULL, NULL);
    _exit(status != HVRUN_OK && strstr(hvrun_last_error(), words) == NULL ? 99 : status);
  }
  CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state));
  return WEXITSTATUS(state);
}

static void births_gone_wrong_are_told(void) {
  CHECK(init_with("WORLD_SIZE", "2", "WORLD_SIZE=2") == HVRUN_ERROR_CONTRACT);
  CHECK(init_with("OMPI_COMM_WORLD_SIZE", "4", "mpirun") == HVRUN_ERROR_CONTRACT);
  CHECK(init_with("HVRUN_RANK", "0", "HVRUN_SIZE") == HVRUN_ERROR_CONTRACT);
  CHECK(init_with("HVRUN_FUSION_THRESHOLD", "lots", "HVRUN_FUSION_THRESHOLD is 'lots'") ==
        HVRUN_ERROR_CONTRACT);
  CHECK(init_with("HOROVOD_FUSION_THRESHOLD", "-1", "HOROVOD_FUSION_THRESHOLD") ==
        HVRUN_ERROR_CONTRACT);
  CHECK(init_with("WORLD_SIZE", "1", "") == HVRUN_OK);
}

static void alone_it_is_rank_0_of_1(void) {
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  CHECK(hvrun_rank(NULL) == 0 && hvrun_size(NULL) == 1);
  CHECK(hvrun_local_rank(NULL) == 0 && hvrun_local_size(NULL) == 1);
  CHECK(hvrun_cross_rank(NULL) == 0 && hvrun_cross_size(NULL) == 1);
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK); /* again: nothing happens */
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
}

static void every_operation_works_alone(void) {
  const int64_t shape[2] = {2, 3};
  const float input[6] = {1, 2, 3, 4, 5, 6};
  float output[6] = {0};
  CHECK(hvrun_allreduce(NULL, "sum", input, output, 6, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
  CHECK(memcmp(input, output, sizeof input) == 0);
  CHECK(hvrun_allreduce(NULL, "average", output, output, 6, HVRUN_FLOAT32, HVRUN_AVERAGE) ==
        HVRUN_OK);
  CHECK(memcmp(input, output, sizeof input) == 0);
  CHECK(hvrun_broadcast(NULL, "b", output, 6, HVRUN_FLOAT32, 0) == HVRUN_OK);

  hvrun_request scaled = sum_of("scaled", shape, 2, input, output);
  scaled.prescale = 2;
  scaled.postscale = 3;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  CHECK(hvrun_enqueue(NULL, &scaled, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  CHECK(output[5] == 36);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

static void a_gathered_result_belongs_to_the_library(void) {
  const int64_t shape[2] = {2, 3};
  const float input[6] = {1, 2, 3, 4, 5, 6};
  hvrun_request gather = sum_of("g", shape, 2, input, NULL);
  gather.operation = HVRUN_ALLGATHER;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  hvrun_result result = HVRUN_RESULT_INIT;
  CHECK(hvrun_enqueue(NULL, &gather, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, 10, &result) == HVRUN_OK);
  CHECK(result.ndim == 2 && result.shape[0] == 2 && result.shape[1] == 3);
  CHECK(result.bytes == sizeof input && memcmp(result.data, input, sizeof input) == 0);
  CHECK(result.type == HVRUN_FLOAT32);
  CHECK(hvrun_wait(NULL, handle, 0, &result) == HVRUN_OK); /* twice: the same answer */
  CHECK(hvrun_poll(NULL, handle) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_ERROR_HANDLE);
  CHECK(hvrun_wait(NULL, handle, 0, NULL) == HVRUN_ERROR_HANDLE);
  CHECK(hvrun_poll(NULL, handle) == HVRUN_ERROR_HANDLE);
  CHECK_SAYS("released");
}

static void what_nothing_carries_out_is_refused_at_once(void) {
  float data[6] = {0};
  const int64_t shape[2] = {2, 3};
  hvrun_request request = sum_of("whole", shape, 2, data, data);
  hvrun_handle handle = 77;
  request.type = HVRUN_UINT64;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_UNSUPPORTED);
  CHECK_SAYS("type 13 (uint64) is reserved");
  request.type = HVRUN_UINT32;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_UNSUPPORTED);
  CHECK_SAYS("type 12 (uint32) is reserved");
  request.type = HVRUN_INT32;
  request.reduction = HVRUN_ADASUM;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_UNSUPPORTED);
  CHECK_SAYS("enqueue tensor 'whole': adasum combines floating-point tensors, not int32");
  CHECK(handle == HVRUN_NO_HANDLE);
}

static void a_gpu_that_is_not_there_is_told(void) {
  const int64_t shape[2] = {2, 3};
  float data[8] = {0};
  hvrun_handle handle = 77;
  hvrun_request elsewhere = sum_of("elsewhere", shape, 2, data, data);
  elsewhere.device = 1 << 20; /* no such GPU, or no GPU at all */
  if (hvrun_enqueue(NULL, &elsewhere, &handle) != HVRUN_ERROR_ARGUMENT)
    CHECK_SAYS("use GPUs by CUDA's driver: libcuda.so.1");
  CHECK(handle == HVRUN_NO_HANDLE);
}

static void malformed_requests_are_refused(void) {
  const int64_t shape[2] = {2, 3}, negative[2] = {2, -3}, huge[2] = {INT64_MAX, 2};
  float data[8] = {0};
  char long_name[1100];
  hvrun_handle handle = 77;
  const hvrun_request good = sum_of("good", shape, 2, data, data);
#define REFUSED(field, value, status)                    \
  do {                                                   \
    hvrun_request bad = good;                            \
    bad.field = value;                                   \
    handle = 77;                                         \
    CHECK(hvrun_enqueue(NULL, &bad, &handle) == status); \
    CHECK(handle == HVRUN_NO_HANDLE);                    \
  } while (0)
  memset(long_name, 'n', sizeof long_name);
  long_name[1099] = '\0';
  CHECK(hvrun_enqueue(NULL, NULL, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_enqueue(NULL, &good, NULL) == HVRUN_ERROR_ARGUMENT);
  REFUSED(struct_size, 3, HVRUN_ERROR_ARGUMENT);
  REFUSED(struct_size, (size_t)-1, HVRUN_ERROR_ARGUMENT);
  REFUSED(operation, (hvrun_operation)0, HVRUN_ERROR_ARGUMENT);
  REFUSED(operation, (hvrun_operation)99, HVRUN_ERROR_ARGUMENT);
  REFUSED(name, NULL, HVRUN_ERROR_ARGUMENT);
  REFUSED(name, "", HVRUN_ERROR_ARGUMENT);
  REFUSED(name, long_name, HVRUN_ERROR_ARGUMENT);
  REFUSED(type, (hvrun_type)0, HVRUN_ERROR_ARGUMENT);
  REFUSED(type, HVRUN_UINT16, HVRUN_ERROR_UNSUPPORTED);
  REFUSED(type, (hvrun_type)16, HVRUN_ERROR_ARGUMENT);
  REFUSED(reduction, (hvrun_reduction)9, HVRUN_ERROR_ARGUMENT);
  REFUSED(ndim, -1, HVRUN_ERROR_ARGUMENT);
  REFUSED(ndim, 65, HVRUN_ERROR_ARGUMENT);
  REFUSED(shape, NULL, HVRUN_ERROR_ARGUMENT);
  REFUSED(shape, negative, HVRUN_ERROR_ARGUMENT);
  REFUSED(shape, huge, HVRUN_ERROR_ARGUMENT);
  REFUSED(input, NULL, HVRUN_ERROR_ARGUMENT);
  REFUSED(input, data + 1, HVRUN_ERROR_ARGUMENT); /* overlaps the output */
  REFUSED(output_bytes, 23, HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("output_bytes is 23, too small for 24 bytes");
  REFUSED(prescale, NAN, HVRUN_ERROR_ARGUMENT);
  REFUSED(postscale, INFINITY, HVRUN_ERROR_ARGUMENT);
  REFUSED(flags, 1, HVRUN_ERROR_ARGUMENT);
  REFUSED(process_set, 1, HVRUN_ERROR_ARGUMENT);
  REFUSED(device, -1, HVRUN_ERROR_ARGUMENT);
  REFUSED(stream, data, HVRUN_ERROR_ARGUMENT);
  REFUSED(group, 1, HVRUN_ERROR_ARGUMENT);
  REFUSED(group_size, 1, HVRUN_ERROR_ARGUMENT);
  REFUSED(split_count, 1, HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_broadcast(NULL, "b", data, 1, HVRUN_FLOAT32, 1) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("root 1");
  CHECK(hvrun_allreduce(NULL, "x", data, NULL, 1, HVRUN_FLOAT32, HVRUN_SUM) ==
        HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_wait(NULL, 1, NAN, NULL) == HVRUN_ERROR_ARGUMENT);
  /* None of them is in flight now. */
  CHECK(hvrun_enqueue(NULL, &good, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

/* The options as a program built with a later hvrun.h would pass them. */
static void newer_options_are_understood(void) {
  struct {
    hvrun_options known;
    uint64_t added[3];
  } newer;
  hvrun_context* context = NULL;
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  CHECK(hvrun_init(&newer.known, &context) == HVRUN_OK && hvrun_size(context) == 1);
  CHECK(hvrun_shutdown(context) == HVRUN_OK);
  newer.added[2] = 1;
  CHECK(hvrun_init(&newer.known, &context) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("hvrun_init: the struct sets a field that this libhvrun");
  newer.known.struct_size = 0;
  CHECK(hvrun_init(&newer.known, &context) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("HVRUN_OPTIONS_INIT");
}

static void a_gathered_result_stays_within_the_room_that_was_stated(void) {
  const int64_t shape[1] = {2};
  const float input[2] = {1, 2};
  float output[3] = {0, 0, 77};
  hvrun_request gather = sum_of("room", shape, 1, input, output);
  hvrun_handle handle;
  gather.operation = HVRUN_ALLGATHER;
  gather.output_bytes = 8;
  CHECK(hvrun_enqueue(NULL, &gather, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && hvrun_release(NULL, handle) == HVRUN_OK);
  CHECK(output[0] == 1 && output[1] == 2 && output[2] == 77);
  gather.output_bytes = 7;
  CHECK(hvrun_enqueue(NULL, &gather, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("tensor 'room': output_bytes is 7");
}

/* A request as a program built with a later or an earlier hvrun.h would pass it. */
static void older_and_newer_requests_are_understood(void) {
  const int64_t shape[1] = {2};
  float data[2] = {1, 2};
  struct {
    hvrun_request known;
    uint64_t added;
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.known = sum_of("newer", shape, 1, data, data);
  newer.known.struct_size = sizeof newer;
  hvrun_handle handle;
  CHECK(hvrun_enqueue(NULL, &newer.known, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && hvrun_release(NULL, handle) == HVRUN_OK);
  newer.added = 1;
  CHECK(hvrun_enqueue(NULL, &newer.known, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("does not know");

  hvrun_request older = sum_of("older", shape, 1, data, data);
  older.struct_size = offsetof(hvrun_request, prescale);
  older.prescale = NAN; /* beyond what the old program knows: not read */
  CHECK(hvrun_enqueue(NULL, &older, &handle) == HVRUN_OK);
  hvrun_result small = HVRUN_RESULT_INIT;
  small.struct_size = offsetof(hvrun_result, data);
  small.data = data + 1;
  CHECK(hvrun_wait(NULL, handle, -1, &small) == HVRUN_OK);
  CHECK(small.ndim == 1 && small.data == data + 1 &&
        small.struct_size == offsetof(hvrun_result, data));
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);

  /* Before output_bytes was there, which lies beyond what this program knows. */
  hvrun_request first = sum_of("first", shape, 1, data, data);
  first.struct_size = offsetof(hvrun_request, output_bytes);
  first.output_bytes = 1;
  CHECK(hvrun_enqueue(NULL, &first, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && hvrun_release(NULL, handle) == HVRUN_OK);
}

static void contexts_are_apart(void) {
  hvrun_context* one = NULL;
  hvrun_context* two = NULL;
  float data = 1;
  hvrun_handle handle;
  const hvrun_request request = sum_of("x", NULL, 0, &data, &data);
  CHECK(hvrun_init(NULL, &one) == HVRUN_OK && hvrun_init(NULL, &two) == HVRUN_OK);
  CHECK(one != two && hvrun_size(one) == 1);
  CHECK(hvrun_enqueue(one, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(two, handle, 0, NULL) == HVRUN_ERROR_HANDLE);
  CHECK(hvrun_wait(one, handle, -1, NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(one) == HVRUN_OK);
  CHECK(hvrun_wait(one, handle, -1, NULL) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_shutdown(one) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_rank(one) == -1 && hvrun_rank(two) == 0);
  CHECK(hvrun_shutdown(two) == HVRUN_OK);
}

static void a_forked_child_is_told_to_keep_off(void) {
  int state = 0;
  const pid_t child = fork();
  if (child == 0) {
    float data = 1;
    int good = hvrun_rank(NULL) == -1;
    good = good && hvrun_allreduce(NULL, "x", &data, &data, 1, HVRUN_FLOAT32, HVRUN_SUM) ==
                       HVRUN_ERROR_CONTRACT;
    good = good && strstr(hvrun_last_error(), "forked") != NULL;
    good = good && hvrun_init(NULL, NULL) == HVRUN_ERROR_CONTRACT &&
           hvrun_shutdown(NULL) == HVRUN_ERROR_CONTRACT;
    exit(good ? 0
              : 1); /* with the handlers of exit: they must not touch the parent's context either */
  }
  CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
}

static void it_can_begin_again_a_hundred_times(void) {
  for (int round = 0; round < 100; ++round) {
    float data = 1;
    CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
    CHECK(hvrun_allreduce(NULL, "x", &data, &data, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
    CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  }
  CHECK(hvrun_rank(NULL) == -1);
}

static void names_and_sizes(void) {
  CHECK(strcmp(hvrun_version(), "0.1.0") == 0);
  CHECK(strlen(hvrun_status_name(HVRUN_ERROR_PEER_LOST)) > 0);
  CHECK(hvrun_status_name((hvrun_status)1234) != NULL);
  CHECK(hvrun_type_size(HVRUN_BFLOAT16) == 2 && hvrun_type_size(HVRUN_FLOAT64) == 8);
  CHECK(hvrun_type_size(HVRUN_FLOAT8_E4M3) == 1 && hvrun_type_size(HVRUN_FLOAT8_E5M2) == 1);
  CHECK(hvrun_type_size((hvrun_type)0) == 0 && hvrun_type_size(HVRUN_UINT64) == 0);
  CHECK(hvrun_mpi_version(NULL, NULL) == HVRUN_ERROR_ARGUMENT);
  int32_t version = 0;
  CHECK(hvrun_nccl_version(NULL) == HVRUN_ERROR_ARGUMENT);
  setenv("HVRUN_NCCL", "/nowhere/libnccl.so.2", 1);
  CHECK(hvrun_nccl_version(&version) == HVRUN_ERROR_UNSUPPORTED && version == 0);
  CHECK(strstr(hvrun_last_error(), "/nowhere/libnccl.so.2") != NULL);
  unsetenv("HVRUN_NCCL");
  const char* table = NULL;
  CHECK(hvrun_carriers(NULL) == HVRUN_ERROR_ARGUMENT);
  setenv("HVRUN_BACKEND", "ncl", 1);
  CHECK(hvrun_carriers(&table) == HVRUN_ERROR_CONTRACT && table == NULL);
  CHECK(strstr(hvrun_last_error(), "HVRUN_BACKEND is 'ncl': not a list of nccl, mpi") != NULL);
  unsetenv("HVRUN_BACKEND");
  CHECK(hvrun_carriers(&table) == HVRUN_OK && strstr(table, "\nallgather ") != NULL);
}

int main(void) {
  nothing_works_before_init();
  births_gone_wrong_are_told();
  alone_it_is_rank_0_of_1();
  every_operation_works_alone();
  a_gathered_result_belongs_to_the_library();
  malformed_requests_are_refused();
  a_gpu_that_is_not_there_is_told();
  what_nothing_carries_out_is_refused_at_once();
  a_gathered_result_stays_within_the_room_that_was_stated();
  older_and_newer_requests_are_understood();
  newer_options_are_understood();
  contexts_are_apart();
  a_forked_child_is_told_to_keep_off();
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  it_can_begin_again_a_hundred_times();
  names_and_sizes();
  if (failures == 0) printf("api_test: all good\n");
  return failures == 0 ? 0 : 1;
}
