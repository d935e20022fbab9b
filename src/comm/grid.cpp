#include "espalier/comm/grid.hpp"

namespace espalier {

namespace {
int checked_replication(int ranks, int replication) {
  if (replication < 1 || ranks % replication != 0)
    usage_error("grid.replication = {} does not divide the number of ranks, {}; choose a divisor of {}",
                replication, ranks, ranks);
  return replication;
}
}  // namespace

Grid::Grid(const Communicator& world, int replication)
    : replication_(checked_replication(world.size(), replication)),
      world_(world.split(0, world.rank())),
      row_comm_(world_.split(world_.rank() / replication_, world_.rank())),
      column_comm_(world_.split(world_.rank() % replication_, world_.rank())) {}

}  // namespace espalier
