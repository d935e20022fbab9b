/* Espalier for programs in C, and in whatever calls C: a job, minibatches as they are drawn, a
 * network that is trained. libespalier.so; docs/library.md has the way in, examples/c a program.
 *
 *     espalier_job* job;
 *     if (espalier_open(&(espalier_open_options){.struct_size = sizeof(espalier_open_options),
 *                                                .config_path = "job.toml"}, &job))
 *       fprintf(stderr, "%s\n", espalier_error());
 *
 * Collective: to be called by all ranks of the job, in the same order, with the same arguments but
 * where a function says otherwise. All others are local.
 *
 * Errors: a function returns ESPALIER_OK or why not; espalier_error() says it in words. Errors of a
 * job's config, files and memory are those of all ranks, and the job goes on, or was not opened.
 * After ESPALIER_FAILED a job can only be closed, and other ranks may wait: end the process by
 * espalier_abort.
 *
 * Threads: one at a time calls functions of a job and its loaders. Batches may be read and freed by
 * any. A child that was forked off calls none.
 *
 * Structures begin with struct_size, which the caller sets to sizeof; members that a library does
 * not know, or a caller, are left alone.
 */
#ifndef ESPALIER_H
#define ESPALIER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ESPALIER_API __attribute__((visibility("default")))
#else
#define ESPALIER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The exit codes of the program, and two of its own. */
enum espalier_code {
  ESPALIER_STOPPED = -2, /* a rank has asked to stop */
  ESPALIER_END = -1,     /* no batch is left */
  ESPALIER_OK = 0,
  ESPALIER_FAILED = 1,  /* a defect, or a broken machine */
  ESPALIER_USAGE = 2,   /* a wrong call, or a wrong config */
  ESPALIER_INPUT = 3,   /* a file is missing, damaged or inconsistent */
  ESPALIER_MEMORY = 4,  /* the job does not fit in memory */
  ESPALIER_DIVERGED = 6 /* numbers that are not finite came out of finite ones */
};

typedef struct espalier_job espalier_job;
typedef struct espalier_loader espalier_loader;
typedef struct espalier_batch espalier_batch;

/* "0.1.0". */
ESPALIER_API const char* espalier_version(void);
/* What the last call of this thread that failed said, until it fails again. UTF-8, one line. */
ESPALIER_API const char* espalier_error(void);
/* Starts MPI where nobody has; it then ends when the process does. Rank and number of ranks of
 * MPI_COMM_WORLD. Collective, if it starts MPI. */
ESPALIER_API int espalier_world(int* rank, int* ranks);
/* Is MPI started by somebody, or by the variables of a launcher about to be? Sends nothing. */
ESPALIER_API int espalier_is_launched(void);
/* Prints `message` with rank and host, and ends all ranks of MPI_COMM_WORLD with this exit code. */
ESPALIER_API void espalier_abort(int code, const char* message);

/* ---- a job ------------------------------------------------------------------------------------ */

typedef struct espalier_open_options {
  size_t struct_size;
  const char* config_path; /* an input file, or null */
  const char* config_text; /* its text instead, or null */
  const char* const* keys; /* [key_count] "train.epochs=5", as on the command line: they count more */
  int64_t key_count;
  int32_t has_communicator; /* else MPI_COMM_WORLD, which is started where nobody has */
  int32_t communicator;     /* as a Fortran handle (MPI_Comm_c2f; mpi4py's py2f); it is duplicated */
  /* What MPI_Get_library_version says to the caller, or null: another MPI than the library's is refused. */
  const char* mpi_library;
} espalier_open_options;

/* Collective. Opens the graph, and settles what "auto" stands for, as `espalier train` does; reads
 * edges and features when they are first needed. Writes no file. */
ESPALIER_API int espalier_open(const espalier_open_options* options, espalier_job** job);
/* Collective. Its loaders are closed with it; batches stay. Null: nothing happens. */
ESPALIER_API int espalier_close(espalier_job* job);
/* What the job is, as JSON: config (resolved), graph, types, relations, labels, tables of features,
 * ranks, threads, warnings so far (rank 0). Until it is asked again, or closed. Null: it failed. */
ESPALIER_API const char* espalier_describe(espalier_job* job);
/* Collective. values[k] becomes its sum over ranks, the same on each. */
ESPALIER_API int espalier_sum(espalier_job* job, double* values, int64_t count);

/* ---- minibatches ------------------------------------------------------------------------------ */

/* Memory of the caller's kind, as pinned memory is, at a multiple of 64 bytes, or null: there is none;
 * and what takes it back. Called by any thread. */
typedef void* (*espalier_allocate)(void* context, size_t bytes);
typedef void (*espalier_release)(void* context, void* memory);

typedef struct espalier_loader_options {
  size_t struct_size;
  /* Null, and no vertices: the batches that `espalier train` draws, bit for bit. Else "train",
   * "valid", "test": every vertex of the split once, in order. */
  const char* split;
  /* [vertex_count] instead of a split: these, in this order, each once, the same on all ranks. */
  const int64_t* vertices;
  int64_t vertex_count;
  const int64_t* fanout; /* [fanout_count] next to the seeds first, -1: whole rows; none: the config's */
  int64_t fanout_count;
  int64_t batch_size; /* 0: the config's */
  int64_t epochs;     /* 0: train.epochs; with a split or vertices 1 */
  /* Steps that are drawn and fetched before they are asked for; -1: run.prefetch_steps, 0: none. */
  int64_t ahead;
  int32_t on_host; /* batches of a job on GPUs, in memory of the host? else they are in the GPU's */
  /* Where rows of features are written for batches in memory of the host; null: memory of the library.
   * They are there as long as batches are. */
  espalier_allocate allocate;
  espalier_release release;
  void* context;
} espalier_loader_options;

typedef struct espalier_loader_facts {
  size_t struct_size;
  int64_t epochs;
  int64_t batches;          /* of an epoch, over all ranks */
  int64_t steps;            /* of an epoch */
  int64_t batches_per_step; /* S, over all ranks */
  int64_t items;            /* of an epoch on each rank, the same number on all: steps x ceil(S / ranks) */
} espalier_loader_facts;

/* Collective. Several loaders of a job share its matrix and features. */
ESPALIER_API int espalier_loader_open(espalier_job* job, const espalier_loader_options* options,
                                      espalier_loader** loader);
ESPALIER_API int espalier_loader_close(espalier_loader* loader); /* collective */
ESPALIER_API int espalier_loader_facts_of(espalier_loader* loader, espalier_loader_facts* facts);
/* Collective. The next item is the first of that step; epochs count from 1, steps from 0. What was asked
 * for is dropped. */
ESPALIER_API int espalier_loader_seek(espalier_loader* loader, int64_t epoch, int64_t step);
/* By any thread, and by a handler of a signal. This rank wishes to stop: on all ranks next() gives
 * ESPALIER_STOPPED before the same step, one of those that are drawn from now on, until the loader is
 * sought. */
ESPALIER_API void espalier_loader_stop(espalier_loader* loader);
/* Collective. Asks for the next item; does not wait, and next() does so itself. */
ESPALIER_API int espalier_loader_begin(espalier_loader* loader);
/* Waits for what was asked for, so many seconds at most: *ready is 1 when next() will not wait. */
ESPALIER_API int espalier_loader_wait(espalier_loader* loader, double seconds, int32_t* ready);
/* Collective. The next item of this rank, to be freed; ESPALIER_END behind the last, *batch = null.
 * An item may have no seeds: where ranks share a step unevenly, so that all have as many items. */
ESPALIER_API int espalier_loader_next(espalier_loader* loader, espalier_batch** batch);

/* A block, in compressed sparse rows: what layer l computes with. Row i has the entries
 * indptr[i] .. indptr[i + 1]; rows and columns are places in the batch's vertices, of which both
 * are the first ones. */
typedef struct espalier_block {
  int64_t rows, columns, entries;
  const int64_t* indptr;  /* [rows + 1], from 0 */
  const int32_t* indices; /* [entries] */
  /* [entries] what a row's sources are multiplied by: of a mean 1 / entries of the row. */
  const float* values;
  const uint8_t* relations; /* [entries], or null: the network does not tell relations apart */
  /* Features of edges: row k of edge_rows belongs to entry edge_entries[k]. */
  int64_t edge_count, edge_width;
  const int32_t* edge_entries; /* [edge_count] ascending */
  const float* edge_rows;      /* [edge_count, edge_width] */
} espalier_block;

/* Rows of a table of features (espalier_describe: tables), one for each vertex of its types, in the
 * order of the vertices. */
typedef struct espalier_rows {
  int64_t rows, columns;
  const float* data; /* [rows, columns] */
} espalier_rows;

/* All arrays belong to the batch, and stay until it is freed, whatever becomes of loader and job. Null
 * are those of another kind of job alone: of one that is there and empty there is a pointer. */
typedef struct espalier_batch_view {
  size_t struct_size;
  int64_t epoch;     /* from 1 */
  int64_t step;      /* of the epoch, from 0 */
  int64_t batch;     /* of the epoch, from 0; -1: an item without a batch */
  int32_t ends_step; /* is it this rank's last of the step? */
  int32_t layers;
  /* ranks / the examples of the step, seeds with labels (or links): the gradient of (sum of losses x
   * scale), averaged over ranks as DistributedDataParallel does, is that of the step's mean. 0 where
   * there is nothing to learn. */
  double scale;
  int64_t seed_count, vertex_count;
  const int64_t* vertices;      /* [vertex_count] ids of the graph file, the seeds first */
  const espalier_block* blocks; /* [layers], from the input to the output */
  int64_t table_count;
  const espalier_rows* tables; /* [table_count] */
  /* Labels of the seeds: one class each (-1: not to be learnt), or several (255: not known). */
  const int32_t* classes;    /* [seed_count], or null */
  const uint8_t* label_rows; /* [seed_count, label_columns], or null */
  int64_t label_columns;
  /* Links instead, as places in the seeds. */
  int64_t link_count, negatives;
  const int32_t *heads, *tails, *link_relations;  /* [link_count], or null */
  const int32_t *negative_heads, *negative_tails; /* [link_count, negatives], or null */
  /* Of all vertices the type, where the graph has several, in runs: [run_begins[k], run_begins[k + 1])
   * have the type run_types[k]. */
  int64_t run_count;
  const int64_t* run_begins; /* [run_count + 1], or null */
  const int32_t* run_types;  /* [run_count], or null */
  /* Do all arrays but these two lie in memory of the GPU that the job computes on? Before they are
   * read there, espalier_batch_wait. */
  int32_t on_gpu;
} espalier_batch_view;

ESPALIER_API int espalier_batch_look(const espalier_batch* batch, espalier_batch_view* view);
/* Of the sample; 0: an item without a batch. The sum of an epoch's, modulo 2^64 and over ranks, is what
 * `espalier sample` prints. */
ESPALIER_API uint64_t espalier_batch_digest(const espalier_batch* batch);
/* Of a batch on a GPU, before `stream`, a cudaStream_t that lives as long as the batch, reads it: what
 * the stream is given from here on finds the arrays made, and they stay, when the batch is freed, until
 * it has done all that it was given by then. Nothing of another batch. */
ESPALIER_API int espalier_batch_wait(const espalier_batch* batch, void* stream);
ESPALIER_API void espalier_batch_free(espalier_batch* batch); /* by any thread; null: nothing happens */

/* ---- the job's own network --------------------------------------------------------------------- */

/* What an epoch came to. NaN: there is none. */
typedef struct espalier_epoch {
  size_t struct_size;
  int64_t epoch;
  double loss, train, valid, test; /* the task's metric (train.metric) of the weights of this moment */
  int64_t best_epoch;
  uint64_t digest; /* of the samples */
} espalier_epoch;

/* Collective. The next step of training; *more = 0: the epoch's steps are done, end it. ESPALIER_END:
 * training is done. */
ESPALIER_API int espalier_train_step(espalier_job* job, int32_t* more);
/* Collective. The steps that are left of the epoch, and its end: evaluation, where it is due.
 * ESPALIER_END: training is done. `epoch` may be null. */
ESPALIER_API int espalier_train_epoch(espalier_job* job, espalier_epoch* epoch);
/* Collective. Ends training: the network has the best weights, where an epoch was evaluated. */
ESPALIER_API int espalier_train_end(espalier_job* job);
/* Collective. Metrics of the weights of this moment: train, valid, test. `epoch`: only these are set. */
ESPALIER_API int espalier_evaluate(espalier_job* job, espalier_epoch* epoch);
/* Collective. What the network gives for vertices, each rank its own or none, by whole rows:
 * outputs [count, outputs of espalier_describe]. It is computed for all of the graph, in chunks. */
ESPALIER_API int espalier_infer(espalier_job* job, const int64_t* vertices, int64_t count, float* outputs);

/* The network's tensors, as weights.h5 has them, which are the same on every rank. */
typedef struct espalier_tensor {
  size_t struct_size;
  const char* name;
  int64_t rows, columns;
} espalier_tensor;
/* Collective where the network is not made yet. ESPALIER_END behind the last. */
ESPALIER_API int espalier_tensor_at(espalier_job* job, int64_t place, espalier_tensor* tensor);
ESPALIER_API int espalier_tensor_read(espalier_job* job, int64_t place, float* values);
/* Collective by nature: write the same on every rank. */
ESPALIER_API int espalier_tensor_write(espalier_job* job, int64_t place, const float* values);

#ifdef __cplusplus
}
#endif
#endif
