// Minibatches of a job in a program of one's own, and its own network, by espalier.hpp.
//
//   c++ batches.cpp $(pkg-config --cflags --libs espalier) -o batches
//   mpirun -np 4 ./batches graph.file=graph.h5 model.hidden=64 train.epochs=5
#include <cstdio>
#include <espalier.hpp>

int main(int argc, char** argv) {
  int rank = 0, ranks = 1;
  espalier_world(&rank, &ranks);
  try {
    espalier::c::Job job({argv + 1, argv + argc});
    {
      espalier::c::LoaderOptions once;
      once.epochs = 1;
      auto loader = job.loader(once);
      double seeds = 0, edges = 0;
      while (const auto batch = loader.next()) {
        const auto& view = batch->view();
        seeds += static_cast<double>(view.seed_count);
        for (int l = 0; l < view.layers; ++l) edges += static_cast<double>(view.blocks[l].entries);
      }
      seeds = job.sum(seeds), edges = job.sum(edges);
      if (rank == 0) std::printf("an epoch: %.0f seeds, %.0f edges\n", seeds, edges);
    }
    while (const auto epoch = job.train_epoch())
      if (rank == 0) std::printf("epoch %d: loss %.4f\n", static_cast<int>(epoch->epoch), epoch->loss);
    job.end_training();
    const auto test = job.evaluate().test;
    if (rank == 0) std::printf("test %.4f\n", test);
  } catch (const espalier::c::Error& error) {
    if (error.code() == ESPALIER_FAILED) espalier_abort(error.code(), error.what());
    if (rank == 0) std::fprintf(stderr, "%s\n", error.what());
    return error.code();
  }
}
