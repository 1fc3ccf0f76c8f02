/* A pipeline over micro-batches: every rank holds one layer of a model; activations go to the next
 * rank, gradients come back, and ranks work on different micro-batches at once.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cc pipeline.c -o pipeline $(pkg-config --cflags --libs hvrun) \
 *     -Wl,-rpath,$(pkg-config --variable=libdir hvrun)
 *   hvrun -np 3 ./pipeline
 *
 * The layer of rank r multiplies by r + 2, and the loss is the sum of what the last layer yields,
 * so each rank can say what its gradient must be.
 */
#include <hvrun/hvrun.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMicroBatches = 6, kElements = 1000 };

static void check(hvrun_status status) {
  if (status == HVRUN_OK) return;
  fprintf(stderr, "pipeline: %s\n", hvrun_last_error());
  exit(1);
}

/* Starts to send a micro-batch to `peer`, or to receive one from it. A transfer is known by its
 * name: the direction and the micro-batch. */
static hvrun_handle start(hvrun_operation operation, const char* what, int micro_batch, int peer,
                          double* values) {
  static const int64_t count = kElements;
  char name[32];
  hvrun_handle handle;
  hvrun_request request = HVRUN_REQUEST_INIT;
  snprintf(name, sizeof name, "%s %d", what, micro_batch);
  request.operation = operation;
  request.type = HVRUN_FLOAT64;
  request.name = name;
  request.root = peer;
  request.ndim = 1;
  request.shape = &count;
  request.input = operation == HVRUN_SEND ? values : NULL;
  request.output = operation == HVRUN_RECEIVE ? values : NULL;
  check(hvrun_enqueue(NULL, &request, &handle));
  return handle;
}

static void finish(hvrun_handle handle) {
  if (handle == HVRUN_NO_HANDLE) return;
  check(hvrun_wait(NULL, handle, -1, NULL));
  check(hvrun_release(NULL, handle));
}

/* inputs and outputs of this rank's layer, of every micro-batch: the way back needs the inputs. */
static double inputs[kMicroBatches][kElements], outputs[kMicroBatches][kElements];
static double input_gradients[kMicroBatches][kElements], output_gradients[kMicroBatches][kElements];

static void forward(int rank, int size, double weight) {
  hvrun_handle received[kMicroBatches] = {HVRUN_NO_HANDLE};
  hvrun_handle sent[kMicroBatches] = {HVRUN_NO_HANDLE};
  for (int i = 0; i < kMicroBatches; ++i) {
    if (rank > 0) received[i] = start(HVRUN_RECEIVE, "activations", i, rank - 1, inputs[i]);
    for (int k = 0; rank == 0 && k < kElements; ++k) inputs[i][k] = i + 1;
  }
  for (int i = 0; i < kMicroBatches; ++i) {
    finish(received[i]); /* while the next ones are on their way */
    for (int k = 0; k < kElements; ++k) outputs[i][k] = weight * inputs[i][k];
    if (rank < size - 1) sent[i] = start(HVRUN_SEND, "activations", i, rank + 1, outputs[i]);
  }
  for (int i = 0; i < kMicroBatches; ++i) finish(sent[i]);
}

/* Returns the gradient of the layer's weight, over all micro-batches. */
static double backward(int rank, int size, double weight) {
  hvrun_handle received[kMicroBatches] = {HVRUN_NO_HANDLE};
  hvrun_handle sent[kMicroBatches] = {HVRUN_NO_HANDLE};
  double gradient = 0;
  for (int i = 0; i < kMicroBatches; ++i) {
    if (rank < size - 1)
      received[i] = start(HVRUN_RECEIVE, "gradients", i, rank + 1, output_gradients[i]);
    for (int k = 0; rank == size - 1 && k < kElements; ++k) output_gradients[i][k] = 1;
  }
  for (int i = 0; i < kMicroBatches; ++i) {
    finish(received[i]);
    for (int k = 0; k < kElements; ++k) {
      gradient += output_gradients[i][k] * inputs[i][k];
      input_gradients[i][k] = output_gradients[i][k] * weight;
    }
    if (rank > 0) sent[i] = start(HVRUN_SEND, "gradients", i, rank - 1, input_gradients[i]);
  }
  for (int i = 0; i < kMicroBatches; ++i) finish(sent[i]);
  return gradient;
}

int main(void) {
  check(hvrun_init(NULL, NULL));
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  const double weight = rank + 2;
  forward(rank, size, weight);
  const double gradient = backward(rank, size, weight);
  double expected = kElements * kMicroBatches * (kMicroBatches + 1) / 2;
  for (int other = 0; other < size; ++other) expected *= other == rank ? 1 : other + 2;
  printf("I am layer %d of %d: the gradient of my weight is %g\n", rank, size, gradient);
  if (gradient != expected) fprintf(stderr, "pipeline: it should be %g\n", expected);
  check(hvrun_barrier(NULL)); /* a rank that shuts down ends what others still exchange */
  check(hvrun_shutdown(NULL));
  return gradient == expected ? 0 : 1;
}
