/* A job whose ranks have joined and get no further descriptor: hvrun -np N descriptors_test FOLDER.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/c/check.h"

static struct rlimit before;

static void take_all_descriptors(void) {
  struct rlimit none = before;
  const int first_free = fcntl(0, F_DUPFD_CLOEXEC, 0);
  CHECK(first_free >= 0);
  none.rlim_cur = (rlim_t)first_free;
  close(first_free);
  CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK(fcntl(0, F_DUPFD_CLOEXEC, 0) < 0);
}

static void a_timeline_is_refused_with_its_file_and_the_reason(const char* folder) {
  char pattern[4096], path[4096];
  snprintf(pattern, sizeof pattern, "%s/few-%%r.json", folder);
  snprintf(path, sizeof path, "%s/few-%d.json", folder, hvrun_rank(NULL));
  CHECK(hvrun_timeline_start(NULL, pattern) == HVRUN_ERROR_SYSTEM);
  CHECK_SAYS(path);
  CHECK_SAYS("Too many open files");
}

/* Of small tensors and of what goes in many pieces. */
static void sums_go_on(void) {
  enum { kMost = 300000 };
  float* const data = malloc(kMost * sizeof *data);
  CHECK(data != NULL);
  for (int64_t count = 1; data != NULL && count <= kMost; count += kMost - 1) {
    for (int64_t i = 0; i < count; ++i) data[i] = 1;
    CHECK(hvrun_allreduce(NULL, "sum", data, data, count, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
    CHECK(data[0] == (float)hvrun_size(NULL) && data[count - 1] == data[0]);
  }
  free(data);
}

/* All ranks have the set, or all have words why not. */
static void a_set_is_there_for_all_or_for_none(void) {
  const int32_t ranks[2] = {0, hvrun_size(NULL) - 1};
  uint32_t set = 0;
  const hvrun_status status = hvrun_process_set_add(NULL, ranks, 2, &set);
  if (status != HVRUN_OK) CHECK(hvrun_last_error()[0] != '\0');
  int64_t added = status == HVRUN_OK;
  CHECK(hvrun_allreduce(NULL, "added", &added, &added, 1, HVRUN_INT64, HVRUN_SUM) == HVRUN_OK);
  CHECK(added == 0 || added == hvrun_size(NULL));
  if (status != HVRUN_OK) return;
  if (hvrun_rank(NULL) == ranks[0] || hvrun_rank(NULL) == ranks[1]) {
    float value = 1;
    hvrun_request request = sum_of("in the set", NULL, 0, &value, &value);
    request.process_set = set;
    hvrun_handle handle;
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && value == 2);
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  }
  CHECK(hvrun_process_set_remove(NULL, set) == HVRUN_OK);
}

static void work_without_descriptors(const char* folder, int is_poor) {
  if (is_poor) {
    take_all_descriptors();
    a_timeline_is_refused_with_its_file_and_the_reason(folder);
  }
  sums_go_on();
  a_set_is_there_for_all_or_for_none();
  if (is_poor) CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  const int is_last = hvrun_rank(NULL) == hvrun_size(NULL) - 1;
  work_without_descriptors(argv[1], is_last); /* one rank has none, then all */
  work_without_descriptors(argv[1], 1);
  CHECK(hvrun_timeline_start(NULL, "/dev/null") == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  return failures == 0 ? 0 : 1;
}
