/* hvrun.h: the C API of libhvrun, the collective runtime inside every rank.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Conventions
 *  1. Every function that can fail returns an hvrun_status; HVRUN_OK is 0. hvrun_last_error() gives
 *     the words for the calling thread's last failure: what was being done, where, the reason, what
 *     to try.
 *  2. Every struct begins with its size, set by its *_INIT macro: fields are only ever appended,
 *     a zero or missing field means its documented default, and one that this library does not
 *     know must be zero.
 *  3. A context of NULL is the process's default context, the one hvrun_init(NULL, NULL) made.
 *  4. Any thread may call any function. Enqueue and poll never block; wait and barrier do, and the
 *     waiting thread itself drives the runtime. No function calls back into the caller.
 *  5. Memory given to a request belongs to the caller and must stay as it is until its handle is
 *     complete. A result the caller gave no memory for belongs to the library until
 *     hvrun_release().
 */
#ifndef HVRUN_HVRUN_H_
#define HVRUN_HVRUN_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HVRUN_API __attribute__((visibility("default")))
#else
#define HVRUN_API
#endif

#define HVRUN_VERSION_MAJOR 0
#define HVRUN_VERSION_MINOR 1
#define HVRUN_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hvrun_status {
  HVRUN_OK = 0,
  HVRUN_IN_PROGRESS = 1,       /* poll, or a wait whose timeout passed: not complete yet */
  HVRUN_ERROR_ARGUMENT = 2,    /* the caller's request is malformed */
  HVRUN_ERROR_MISMATCH = 3,    /* ranks disagree on type, shape, operation or root of one name */
  HVRUN_ERROR_DUPLICATE = 4,   /* this name is in flight already */
  HVRUN_ERROR_PEER_LOST = 5,   /* a rank died or went silent; the text names it */
  HVRUN_ERROR_SHUTDOWN = 6,    /* the context is shut down, here or by a peer */
  HVRUN_ERROR_SYSTEM = 7,      /* the operating system refused something */
  HVRUN_ERROR_MEMORY = 8,      /* out of memory */
  HVRUN_ERROR_UNSUPPORTED = 9, /* no backend carries this out */
  HVRUN_ERROR_CONTRACT = 10, /* a rank's birth: a variable is missing or wrong, another launcher */
  HVRUN_ERROR_HANDLE = 11    /* unknown, already released or foreign handle */
} hvrun_status;

typedef enum hvrun_operation {
  HVRUN_ALLREDUCE = 1,
  HVRUN_ALLGATHER = 2,
  HVRUN_BROADCAST = 3,
  HVRUN_BARRIER = 4
} hvrun_operation;

typedef enum hvrun_type {
  HVRUN_UINT8 = 1,
  HVRUN_INT8 = 2,
  HVRUN_INT16 = 3,
  HVRUN_INT32 = 4,
  HVRUN_INT64 = 5,
  HVRUN_FLOAT16 = 6,
  HVRUN_BFLOAT16 = 7,
  HVRUN_FLOAT32 = 8,
  HVRUN_FLOAT64 = 9,
  HVRUN_BOOL = 10,
  /* reserved: */
  HVRUN_UINT16 = 11,
  HVRUN_UINT32 = 12,
  HVRUN_UINT64 = 13,
  HVRUN_FLOAT8_E4M3 = 14,
  HVRUN_FLOAT8_E5M2 = 15
} hvrun_type;

typedef enum hvrun_reduction {
  HVRUN_SUM = 1,
  HVRUN_AVERAGE = 2, /* sum divided by the set's size; integers truncate towards zero */
  HVRUN_MIN = 3,
  HVRUN_MAX = 4,
  HVRUN_PRODUCT = 5
} hvrun_reduction;

typedef struct hvrun_context hvrun_context;
typedef uint64_t hvrun_handle;
#define HVRUN_NO_HANDLE ((hvrun_handle)0)

/* Behind the *_INIT macros, so that they warn in neither language when fields are missing. */
#ifdef __cplusplus
extern "C++" {
template <typename Struct>
inline Struct hvrun_sized() {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}
}
#define HVRUN_SIZED(type) hvrun_sized<type>()
#else
#define HVRUN_SIZED(type) \
  { .struct_size = sizeof(type) }
#endif

typedef struct hvrun_options {
  size_t struct_size;
} hvrun_options;
#define HVRUN_OPTIONS_INIT HVRUN_SIZED(hvrun_options)

/* One collective operation on one tensor. Unset fields are 0. */
typedef struct hvrun_request {
  size_t struct_size;
  hvrun_operation operation;
  hvrun_type type;
  const char* name;          /* the same on all ranks, unique in flight; at most 1,023 bytes */
  uint32_t process_set;      /* 0: all ranks */
  hvrun_reduction reduction; /* allreduce; 0 means HVRUN_SUM */
  int32_t root;              /* broadcast: rank in the set whose input every rank receives */
  int32_t ndim;              /* 0: a scalar (one element; in an allgather a row); at most 64 */
  const int64_t* shape;      /* ndim extents, elements */
  const void* input;         /* broadcast: read on the root only, NULL elsewhere if you like */
  void* output;              /* may equal input; an allgather's has room for all ranks' rows, and
                                an input inside it is copied first. NULL: the library owns the
                                result */
  double prescale;           /* 0 means 1: multiplies the input before the reduction */
  double postscale;          /* 0 means 1: multiplies the result */
  int32_t device;            /* 0: host memory */
  uint32_t flags;            /* 0 */
  void* stream;              /* NULL with host memory */
  uint64_t group;            /* 0: none. Reserved: requests that complete or fail together */
  uint32_t group_size;       /* members of that group */
  size_t output_bytes;       /* room at output; 0: not said, it must suffice. Too little is an
                                HVRUN_ERROR_ARGUMENT: of the enqueue, or where only all ranks' rows
                                are too many, of this rank's operation once the peers have theirs */
} hvrun_request;
#define HVRUN_REQUEST_INIT HVRUN_SIZED(hvrun_request)

/* What an operation yielded. Valid until hvrun_release() of its handle. */
typedef struct hvrun_result {
  size_t struct_size;
  hvrun_type type;
  int32_t ndim;
  const int64_t* shape;
  void* data; /* the caller's output, or memory of the library */
  size_t bytes;
} hvrun_result;
#define HVRUN_RESULT_INIT HVRUN_SIZED(hvrun_result)

/* Joins the job this process was born into (see hvrun-env(7)); alone, the process is rank 0 of 1.
 * options: NULL for defaults. context: NULL makes the default context, or does nothing where there
 * is one; of several threads one joins and the others wait for it. Else a new context is stored
 * there, and every rank must make as many in the same order. Blocks until every rank of the job has
 * called it. A process forked from a rank gets HVRUN_ERROR_CONTRACT from this and every other call:
 * it is no rank. */
HVRUN_API hvrun_status hvrun_init(const hvrun_options* options, hvrun_context** context);

/* Leaves the job. What is pending completes with HVRUN_ERROR_SHUTDOWN, here and on the peers, whose
 * later calls return that too; what had begun to move is finished first. Blocks for that and until
 * every peer has left, at most 5 s in all: a peer that hangs is left behind. The context, its
 * handles and their results are gone afterwards: a call with it returns HVRUN_ERROR_SHUTDOWN. NULL
 * waits while another thread joins or leaves with the default context; where there is none, it is
 * HVRUN_OK. Call it before the process ends, else its end counts as a loss. */
HVRUN_API hvrun_status hvrun_shutdown(hvrun_context* context);

/* Each is -1 before hvrun_init and after hvrun_shutdown. The six numbers of the rank's contract;
 * see hvrun-env(7). */
HVRUN_API int hvrun_rank(const hvrun_context* context);
HVRUN_API int hvrun_size(const hvrun_context* context);
HVRUN_API int hvrun_local_rank(const hvrun_context* context);
HVRUN_API int hvrun_local_size(const hvrun_context* context);
HVRUN_API int hvrun_cross_rank(const hvrun_context* context);
HVRUN_API int hvrun_cross_size(const hvrun_context* context);

/* Starts an operation; every rank of the set must enqueue the same name, in any order. Never
 * blocks. On an error *handle is HVRUN_NO_HANDLE and nothing was started. */
HVRUN_API hvrun_status hvrun_enqueue(hvrun_context* context, const hvrun_request* request,
                                     hvrun_handle* handle);

/* HVRUN_IN_PROGRESS, or the operation's final status. Never blocks. */
HVRUN_API hvrun_status hvrun_poll(hvrun_context* context, hvrun_handle handle);

/* Waits for completion, at most timeout_seconds (negative: for ever). result may be NULL.
 * The handle stays valid until hvrun_release(), so waiting twice gives the same answer. A signal's
 * handler runs meanwhile and the wait goes on: whoever must react to one waits in slices. */
HVRUN_API hvrun_status hvrun_wait(hvrun_context* context, hvrun_handle handle,
                                  double timeout_seconds, hvrun_result* result);

/* Gives back the handle and any memory of the library that belongs to it. An operation still in
 * progress goes on, and with it the use of the caller's memory, whose end can then no longer be
 * learnt. */
HVRUN_API hvrun_status hvrun_release(hvrun_context* context, hvrun_handle handle);

/* Enqueue, wait and release in one call, for operations whose output the caller provides. They wait
 * for ever, and return as soon as a peer is lost or shuts down. Every barrier has one name: one at
 * a time. */
HVRUN_API hvrun_status hvrun_allreduce(hvrun_context* context, const char* name, const void* input,
                                       void* output, int64_t count, hvrun_type type,
                                       hvrun_reduction reduction);
HVRUN_API hvrun_status hvrun_broadcast(hvrun_context* context, const char* name, void* buffer,
                                       int64_t count, hvrun_type type, int root);
HVRUN_API hvrun_status hvrun_barrier(hvrun_context* context);

/* The words for this thread's last status that was an error; never NULL. */
HVRUN_API const char* hvrun_last_error(void);
HVRUN_API const char* hvrun_status_name(hvrun_status status);
HVRUN_API const char* hvrun_version(void);
/* Bytes of one element, 0 for an unknown type. */
HVRUN_API size_t hvrun_type_size(hvrun_type type);

#ifdef __cplusplus
}
#endif
#endif /* HVRUN_HVRUN_H_ */
