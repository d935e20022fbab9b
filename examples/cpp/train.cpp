// Trains a network in a program of one's own: keys of `espalier help config` as arguments.
//
//   mpicxx train.cpp $(pkg-config --cflags --libs espalier-cxx) -o train
//   mpirun -np 4 ./train graph.file=graph.h5 model.hidden=64 train.epochs=5
#include <cstdio>
#include <variant>

#include "espalier/comm/session.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"

int main(int argc, char** argv) {
  espalier::Session session(&argc, &argv);
  const auto& world = session.world();
  try {
    const auto config = espalier::parse_config("", argv[0], {argv + 1, argv + argc});
    auto job = espalier::open_job(world, config, espalier::JobKind::kTrain);
    const auto training = espalier::open_training(job, [] {});
    const auto say = [&](const espalier::EpochReport& epoch) {
      if (world.rank() == 0) std::printf("epoch %ld: loss %.4f\n", epoch.epoch, *epoch.loss);
    };
    std::visit(
        [&](const auto& set) {
          espalier::TrainerOn trainer(set->space(), set->lent());
          trainer.train({.on_epoch = say});
          const auto digest = espalier::hex(trainer.weights_digest());
          if (world.rank() == 0) std::printf("weights %s\n", digest.c_str());
        },
        training);
  } catch (const espalier::UserError& error) {
    if (world.rank() == 0) std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
