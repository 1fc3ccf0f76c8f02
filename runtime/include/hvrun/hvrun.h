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
 *     hvrun_release(), at most until hvrun_shutdown() unless hvrun_keep() was called for it.
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
  HVRUN_ERROR_SHUTDOWN = 6,    /* the context is shut down, here or by a peer,
                                  or the process set was removed */
  HVRUN_ERROR_SYSTEM = 7,      /* the operating system refused something */
  HVRUN_ERROR_MEMORY = 8,      /* out of memory */
  HVRUN_ERROR_UNSUPPORTED = 9, /* no backend carries this out */
  HVRUN_ERROR_CONTRACT = 10, /* a rank's birth: a variable is missing or wrong, another launcher */
  HVRUN_ERROR_HANDLE = 11,   /* unknown, already released or foreign handle */
  HVRUN_ERROR_STALLED = 12   /* a tensor waited for some ranks longer than
                                HVRUN_STALL_SHUTDOWN_SECONDS, which ends the job; the text names
                                them, the same on every rank */
} hvrun_status;

typedef enum hvrun_operation {
  HVRUN_ALLREDUCE = 1,
  HVRUN_ALLGATHER = 2,
  HVRUN_BROADCAST = 3,
  HVRUN_BARRIER = 4,
  HVRUN_REDUCESCATTER = 5, /* an allreduce of which each rank gets its share of the rows: as many
                              as the others', and of the first ranks one more where it does not
                              come out even */
  HVRUN_ALLTOALL = 6,      /* each rank sends some of its rows to each, and gets theirs, by rank */
  HVRUN_JOIN = 7,          /* this rank has run out of data: see hvrun_join */
  HVRUN_SEND = 8,          /* to one rank, which receives by the same name, type and shape; complete
                              when the input is not needed any more */
  HVRUN_RECEIVE = 9,
  HVRUN_SPARSE_ALLREDUCE = 10, /* rows with an index each, as many as a rank has: every rank gets
                                 those of all, one rank's after the other. An index may come more
                                 than once, in what is given and in the result: its rows count
                                 together. Sum and average, which divides every row */
  HVRUN_ALLOCATE = 11 /* the result is memory of that shape on a GPU, its contents undefined. With
                         HVRUN_NCCL_WINDOWS=1 allreduces in place of tensors in it need no copy of
                         NCCL's: they are to lie at the same byte of it on every rank of the set,
                         whose other operations do not take them; NCCL keeps it as long as the set
                         is there. Without, it is as any other */
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
  /* Of the OCP 8-bit Floating Point Specification; reduced as 16-bit floats are: */
  HVRUN_FLOAT8_E4M3 = 14, /* PyTorch's float8_e4m3fn: the greatest number is 448, there is no
                             infinity, and what would be greater becomes a NaN */
  HVRUN_FLOAT8_E5M2 = 15  /* the greatest number is 57,344; what would be greater, infinite */
} hvrun_type;

typedef enum hvrun_reduction {
  HVRUN_SUM = 1,
  HVRUN_AVERAGE = 2, /* sum divided by the set's size; integers truncate towards zero */
  HVRUN_MIN = 3,
  HVRUN_MAX = 4,
  HVRUN_PRODUCT = 5,
  HVRUN_ADASUM = 6 /* allreduce of floating types: of two gradients a and b the sum
                      a (1 - a.b / 2|a|^2) + b (1 - a.b / 2|b|^2), of more pair by pair, each
                      tensor by itself (Maleki et al., MLSys 2021) */
} hvrun_reduction;

/* What float32 and float64 tensors of an allreduce are rounded to on their way between ranks, and
 * so is the result, on every rank; sums are made in float32. Other types, other operations and
 * Adasum with it: HVRUN_ERROR_UNSUPPORTED. */
typedef enum hvrun_compression {
  HVRUN_COMPRESSION_NONE = 0,
  HVRUN_COMPRESSION_FP16 = 1,
  HVRUN_COMPRESSION_BF16 = 2
} hvrun_compression;

/* Bits of a request's flags. */
enum {
  HVRUN_AVERAGE_PRESENT = 1 /* an average divides by the ranks that have not joined */
};

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

/* Some ranks of the job. */
typedef struct hvrun_rank_list {
  const int32_t* ranks;
  size_t count;
} hvrun_rank_list;

typedef struct hvrun_options {
  size_t struct_size;
  const hvrun_rank_list* process_sets; /* process sets to begin with, the same on every rank; the
                                          first gets number 1, and so on */
  size_t process_set_count;
  const void* mpi_communicator; /* where an MPI_Comm lies whose ranks are the job's, in its order;
                                   NULL: the ranks that the launcher has started */
} hvrun_options;
#define HVRUN_OPTIONS_INIT HVRUN_SIZED(hvrun_options)

/* One collective operation on one tensor. Unset fields are 0. */
typedef struct hvrun_request {
  size_t struct_size;
  hvrun_operation operation;
  hvrun_type type;
  const char* name;          /* the same on all ranks, unique in flight; at most 1,023 bytes,
                                not beginning with "hvrun:" */
  uint32_t process_set;      /* 0: all ranks */
  hvrun_reduction reduction; /* allreduce, reducescatter, sparse allreduce; 0 means HVRUN_SUM */
  int32_t root;              /* broadcast: rank in the set whose input every rank receives; send,
                                receive: the other rank */
  int32_t ndim;              /* 0: a scalar (one element; where rows count, a row); at most 64 */
  const int64_t* shape;      /* ndim extents, elements */
  const void* input;         /* broadcast: read on the root only, NULL elsewhere if you like */
  void* output;              /* may equal input, or overlap it where the result has another size
                                than the input. NULL: the library owns the result */
  double prescale;           /* 0 means 1: multiplies the input before the reduction */
  double postscale;          /* 0 means 1: multiplies the result */
  int32_t device;            /* 0: host memory; 1 + n: all addresses are of GPU n, as CUDA counts.
                                NCCL has one of each rank and process set */
  uint32_t flags;            /* 0, or HVRUN_AVERAGE_PRESENT */
  void* stream;              /* a GPU's: the CUstream (cudaStream_t) that fills the input, and that
                                uses the result after hvrun_wait; NULL: the default one */
  uint64_t group;            /* 0: none. Requests of one number travel when all of them are there,
                                and complete or fail as one; the same number again next time keeps
                                the negotiation short */
  uint32_t group_size;       /* requests of that group */
  size_t output_bytes;       /* room at output; 0: not said, it must suffice. Too little is an
                                HVRUN_ERROR_ARGUMENT: of the enqueue, or where only the peers' rows
                                tell, of this rank's operation once they have theirs */
  const int64_t* splits; /* alltoall: rows of the input for each rank of the set, together all of
                                them. NULL: as many for each */
  size_t split_count;    /* how many splits there are: the set's size, or 0 */
  hvrun_compression compression; /* allreduce */
  hvrun_type index_type; /* sparse allreduce: HVRUN_INT32 or HVRUN_INT64, the same on all ranks */
  const void* indices;   /* sparse allreduce: one for each row of the input; output is NULL */
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
  const int64_t* received_splits; /* alltoall: rows of the result from each rank of the set */
  size_t received_split_count;
  int32_t last_joined;   /* join: the rank of the set that joined last; else -1 */
  hvrun_type index_type; /* sparse allreduce */
  const void* indices;   /* sparse allreduce: one for each row of data */
} hvrun_result;
#define HVRUN_RESULT_INIT HVRUN_SIZED(hvrun_result)

/* Joins the job this process was born into (see hvrun-env(7)); alone, the process is rank 0 of 1.
 * options: NULL for defaults. context: NULL makes the default context, or does nothing where there
 * is one; of several threads one joins and the others wait for it. Else a new context is stored
 * there, and every rank must make as many in the same order. Blocks until every rank of the job has
 * called it. A process forked from a rank is none: it gets HVRUN_ERROR_CONTRACT from this and every
 * other call, holds no descriptor of the library, and may live and end as it likes: hvrun(3). */
HVRUN_API hvrun_status hvrun_init(const hvrun_options* options, hvrun_context** context);

/* Leaves the job. What is pending completes with HVRUN_ERROR_SHUTDOWN, here and on the peers, whose
 * later calls return that too; what had begun to move is finished first. Blocks for that and until
 * all peers have heard of it, at most 5 s in all: one that hangs is left behind. By MPI, whose end
 * needs all ranks, that is HVRUN_PEER_TIMEOUT more (a minute where that is 0). The context, its
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

/* Waits for completion, at most timeout_seconds (negative: for ever). result may be NULL. On a GPU
 * the request's stream waits for what is left to do there: what it is given afterwards has the
 * result.
 * The handle stays valid until hvrun_release(), so waiting twice gives the same answer. A signal's
 * handler runs meanwhile and the wait goes on: whoever must react to one waits in slices. */
HVRUN_API hvrun_status hvrun_wait(hvrun_context* context, hvrun_handle handle,
                                  double timeout_seconds, hvrun_result* result);

/* Gives back the handle and any memory of the library that belongs to it. On a GPU the request's
 * stream waits for a complete operation first, as hvrun_wait() has it do, and once the stream has
 * done what it was given by now, others have that memory: nothing else may use it then, and the
 * stream must not have been destroyed. An operation still in progress goes on, and with it the use
 * of the caller's memory, whose end can then no longer be learnt. */
HVRUN_API hvrun_status hvrun_release(hvrun_context* context, hvrun_handle handle);

/* The result of an operation that is complete shall live until hvrun_release(NULL, handle),
 * whatever becomes of the context: for bindings whose tensors lie in it. From now on the handle is
 * known to hvrun_release() only, with any context. HVRUN_ERROR_ARGUMENT: it is not complete yet. */
HVRUN_API hvrun_status hvrun_keep(hvrun_context* context, hvrun_handle handle);

/* Enqueue, wait and release in one call, for operations whose output the caller provides. They wait
 * for ever, and return as soon as a peer is lost or shuts down. Every barrier has one name: one at
 * a time. */
HVRUN_API hvrun_status hvrun_allreduce(hvrun_context* context, const char* name, const void* input,
                                       void* output, int64_t count, hvrun_type type,
                                       hvrun_reduction reduction);
HVRUN_API hvrun_status hvrun_broadcast(hvrun_context* context, const char* name, void* buffer,
                                       int64_t count, hvrun_type type, int root);
HVRUN_API hvrun_status hvrun_barrier(hvrun_context* context);

/* Memory for tensors, at the start of a page, its contents undefined. Where ranks share a host it
 * lies where all of them reach it, and allreduces of more than 1 MiB whose inputs and outputs lie
 * there on every rank are carried out in place, without a copy, if all ranks are on that host and
 * they are neither prescaled nor compressed nor Adasum; elsewhere it is ordinary memory. It may be
 * used for anything, and stays when the context is shut down. A forked child sees its parent's
 * pieces, not copies of them.
 * After HVRUN_ERROR_PEER_LOST, and after a hvrun_shutdown that has left behind a rank which did not
 * answer, other ranks may write to tensors there for a moment more, until they have seen it, too:
 * leave those tensors alone until the ranks have met again (hvrun_init).
 * HVRUN_ERROR_MEMORY: there is not so much. */
HVRUN_API hvrun_status hvrun_alloc(hvrun_context* context, size_t bytes, void** memory);
/* Gives it back; no operation may still use it. NULL is allowed. HVRUN_ERROR_ARGUMENT: not from
 * hvrun_alloc, or freed already. In a forked child it frees nothing of its parent's. */
HVRUN_API hvrun_status hvrun_free(void* memory);
/* memcpy for what goes into memory from hvrun_alloc and is read next by an operation: large pieces
 * go past the caches of this processor. The regions must not overlap. Any thread, at any time.
 * HVRUN_ERROR_ARGUMENT: a pointer is NULL and bytes is not 0. */
HVRUN_API hvrun_status hvrun_copy(void* to, const void* from, size_t bytes);

/* This rank has run out of data before others: waits until all ranks have joined. Meanwhile it
 * takes part in the allreduces of those that have not, with zeros; their averages divide by all
 * ranks, or, with HVRUN_AVERAGE_PRESENT, by those that have not joined. Any other operation of
 * theirs is an HVRUN_ERROR_UNSUPPORTED, to all of them. The rank itself can enqueue nothing in the
 * set until then. *last_joined, if not NULL: the rank that joined last. The operation HVRUN_JOIN is
 * the same for any process set, with a handle; it needs no name. */
HVRUN_API hvrun_status hvrun_join(hvrun_context* context, int32_t* last_joined);

/* Process sets: some ranks of the job that work among themselves. A set's operations wait for no
 * other set's, and one name may be in flight in each. Within a set ranks are counted from 0, in
 * ascending order of their ranks in the job; a request's root is such a number. Set 0 is that of
 * all ranks, and always there. At most 4,096 sets at once, a rank in at most 64 of them, that
 * one included.
 * hvrun_options names those to begin with.
 *
 * Adding and removing concern every rank of the job, members or not: each must make the same calls
 * in the same order. They block until every rank has made the call. */

/* ranks: count of them, in any order; a set of just these ranks must not be there already. *set:
 * its number, the same on every rank, never used again after removal. */
HVRUN_API hvrun_status hvrun_process_set_add(hvrun_context* context, const int32_t* ranks,
                                             int32_t count, uint32_t* set);
/* What has begun to move in the set is finished first; what has not completes with
 * HVRUN_ERROR_SHUTDOWN. */
HVRUN_API hvrun_status hvrun_process_set_remove(hvrun_context* context, uint32_t set);
/* The sets there are now, ascending: as many as capacity has room for; *count: how many there are.
 * sets may be NULL when capacity is 0. */
HVRUN_API hvrun_status hvrun_process_set_list(hvrun_context* context, uint32_t* sets,
                                              int32_t capacity, int32_t* count);
/* The same for a set's ranks in the job. HVRUN_ERROR_ARGUMENT where there is no such set. */
HVRUN_API hvrun_status hvrun_process_set_ranks(hvrun_context* context, uint32_t set, int32_t* ranks,
                                               int32_t capacity, int32_t* count);

/* What this rank's runtime has done since hvrun_init. All but worst_rank only ever grow. */
typedef struct hvrun_counters {
  size_t struct_size;
  uint64_t operations_enqueued;  /* taken by the engine */
  uint64_t operations_completed; /* with HVRUN_OK */
  uint64_t operations_failed;
  uint64_t input_bytes;      /* of tensors that completed: this rank's own */
  uint64_t result_bytes;     /* of their results */
  uint64_t steps;            /* of the engine, that moved something */
  uint64_t decisions;        /* on what travels, applied here */
  uint64_t cache_hits;       /* tensors that ranks agreed on by number */
  uint64_t cache_misses;     /* and by description */
  uint64_t buckets;          /* what travelled as one: a tensor, or several */
  uint64_t fused_buckets;    /* of several */
  uint64_t fused_tensors;    /* in those */
  uint64_t stalls;           /* warnings of stalls that this rank gave */
  uint64_t waits;            /* calls that had to wait for an operation */
  uint64_t wait_nanoseconds; /* so long, all threads together */
  /* Rank 0 only: time in which tensors were ready on some ranks and not on all. */
  uint64_t straggler_nanoseconds;
  uint64_t worst_rank_nanoseconds; /* of it, for the rank that came last most */
  int32_t worst_rank;              /* which one; -1: none, or not known here */
  int32_t reserved;
  uint64_t timeline_dropped; /* events that a timeline lacks */
  uint64_t kept_buckets;     /* predicted ones (HVRUN_BUCKET_BYTES) that were agreed on by their
                                one number */
  uint64_t given_up_buckets; /* that ended, as ranks did otherwise or the cache let go of one of
                                their tensors */
  /* What operations moved: this rank's tensors, and what it passes on for others. */
  uint64_t shared_memory_bytes; /* put into memory that ranks of this host read */
  uint64_t tcp_bytes;           /* sent to ranks of other hosts */
} hvrun_counters;
#define HVRUN_COUNTERS_INIT HVRUN_SIZED(hvrun_counters)

/* Stores the counters as they are now; never blocks. HVRUN_ERROR_ARGUMENT: NULL, or not begun with
 * HVRUN_COUNTERS_INIT. */
HVRUN_API hvrun_status hvrun_counters_read(hvrun_context* context, hvrun_counters* counters);

/* What a training has measured of its steps, in all so far; hvrun tells of it at the job's end. */
typedef struct hvrun_step_times {
  size_t struct_size;
  uint64_t steps;                /* so many were measured */
  uint64_t nanoseconds;          /* that they took together */
  uint64_t data_nanoseconds;     /* of it: waiting for data */
  uint64_t exchange_nanoseconds; /* and waiting for other ranks and what they send */
  uint64_t data_waits;           /* how often it waited for data; 0: that was not measured, and
                                    counts as computing, as whatever is left does */
} hvrun_step_times;
#define HVRUN_STEP_TIMES_INIT HVRUN_SIZED(hvrun_step_times)

/* Tells hvrun how this rank's training goes; never blocks. The newest figures count, each time of
 * all steps since the process began; what is told more often than once a second is passed over
 * until then, and the last goes with hvrun_shutdown. HVRUN_ERROR_ARGUMENT: NULL, not begun with
 * HVRUN_STEP_TIMES_INIT, times of no steps or no waits, parts that are more than the whole, or a
 * total that is less than in the last call of this job. */
HVRUN_API hvrun_status hvrun_report_steps(hvrun_context* context, const hvrun_step_times* times);

/* Begins to write what happens to each tensor into a file in Chrome's trace format, which Perfetto
 * and chrome://tracing show; see hvrun(3). path: each %r in it becomes this rank's number; without
 * one only rank 0 writes, and the call does nothing elsewhere. An old file of that name is lost.
 * HVRUN_ERROR_ARGUMENT where this rank writes one already; HVRUN_ERROR_SYSTEM where there can be no
 * such file. */
HVRUN_API hvrun_status hvrun_timeline_start(hvrun_context* context, const char* path);
/* Ends it and waits until the file is written; as hvrun_shutdown does. HVRUN_OK where none is being
 * written; HVRUN_ERROR_SYSTEM when not all of it could be. */
HVRUN_API hvrun_status hvrun_timeline_stop(hvrun_context* context);

/* The words for this thread's last status that was an error; never NULL. */
HVRUN_API const char* hvrun_last_error(void);
HVRUN_API const char* hvrun_status_name(hvrun_status status);
HVRUN_API const char* hvrun_version(void);
/* Bytes of one element, 0 for an unknown type. */
HVRUN_API size_t hvrun_type_size(hvrun_type type);
/* The version of the NCCL that this process would use on GPUs' memory: 21805 is 2.18.5. The first
 * such call, or operation, opens it. HVRUN_ERROR_UNSUPPORTED, with what was looked for where: there
 * is none. Needs no context, and no GPU. */
HVRUN_API hvrun_status hvrun_nccl_version(int32_t* version);
/* The MPI that this process would use where HVRUN_BACKEND names mpi: "Open MPI v4.1.4",
 * "MPICH 4.0.2"; the words stay. thread_level: NULL, or becomes what it has been begun with, from 0
 * (MPI_THREAD_SINGLE) to 3 (MPI_THREAD_MULTIPLE); -1: it has not begun. The first such call opens
 * it, and does not begin it. HVRUN_ERROR_UNSUPPORTED, with what was looked for: there is none.
 * Needs no context. */
HVRUN_API hvrun_status hvrun_mpi_version(const char** version, int32_t* thread_level);
/* Who would carry out which operation, on the host's memory and on GPUs', as this process's
 * environment has it (HVRUN_BACKEND, HVRUN_DETERMINISTIC, HVRUN_MPI_CUDA) at the first such call: a
 * table for people, whose words stay; hvrun env prints it. HVRUN_ERROR_CONTRACT: a setting is
 * malformed. Needs no context, and neither NCCL nor MPI. */
HVRUN_API hvrun_status hvrun_carriers(const char** table);

#ifdef __cplusplus
}
#endif
#endif /* HVRUN_HVRUN_H_ */
