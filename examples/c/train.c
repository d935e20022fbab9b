/* Minibatches of a job in a program of one's own, then its own network, in C.
 *
 *   cc train.c $(pkg-config --cflags --libs espalier) -o train
 *   mpirun -np 4 ./train graph.file=graph.h5 model.hidden=64 train.epochs=3
 */
#include <espalier.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends all ranks where a call has failed: the others may be waiting. */
static int must(int code) {
  if (code > 0) espalier_abort(code, espalier_error());
  return code;
}

int main(int argc, char** argv) {
  espalier_open_options options = {.struct_size = sizeof options};
  options.keys = (const char* const*)argv + 1;
  options.key_count = argc - 1;
  espalier_job* job = NULL;
  int rank = 0, ranks = 1;
  must(espalier_world(&rank, &ranks));
  const int code = espalier_open(&options, &job); /* the same on every rank */
  if (code != ESPALIER_OK) {
    if (rank == 0) fprintf(stderr, "%s\n", espalier_error());
    return code;
  }

  /* The batches of the first epoch: what a model of one's own computes with. */
  espalier_loader_options of_training = {.struct_size = sizeof of_training, .epochs = 1, .ahead = -1};
  espalier_loader* loader = NULL;
  espalier_batch* batch = NULL;
  must(espalier_loader_open(job, &of_training, &loader));
  double sums[3] = {0, 0, 0};
  while (must(espalier_loader_next(loader, &batch)) != ESPALIER_END) {
    espalier_batch_view view = {.struct_size = sizeof view};
    must(espalier_batch_look(batch, &view));
    sums[0] += (double)view.seed_count;
    for (int l = 0; l < view.layers; ++l) sums[1] += (double)view.blocks[l].entries;
    for (int64_t k = 0; k < view.table_count; ++k) sums[2] += (double)view.tables[k].rows;
    espalier_batch_free(batch);
  }
  must(espalier_loader_close(loader));
  must(espalier_sum(job, sums, 3));
  if (rank == 0) printf("an epoch: %.0f seeds, %.0f edges, %.0f rows\n", sums[0], sums[1], sums[2]);

  /* The job's own network. */
  espalier_epoch epoch = {.struct_size = sizeof epoch};
  while (must(espalier_train_epoch(job, &epoch)) != ESPALIER_END)
    if (rank == 0) printf("epoch %d: loss %.4f, valid %.4f\n", (int)epoch.epoch, epoch.loss, epoch.valid);
  must(espalier_train_end(job));
  must(espalier_evaluate(job, &epoch));
  if (rank == 0) printf("test %.4f\n", epoch.test);
  return must(espalier_close(job));
}
