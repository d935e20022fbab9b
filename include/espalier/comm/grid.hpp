// The p/c x c process grid of the 1.5D algorithms (Tripathy et al. 2024, section 5.2).
//
//              column 0  column 1  p = 6, c = 2. Rank r = i*c + j is P(i,j).
//     row 0    P(0,0)    P(0,1)    A process row P(i,:) holds c copies of block row i of A and H.
//     row 1    P(1,0)    P(1,1)    A process column P(:,j) holds each block row once; requests for
//     row 2    P(2,0)    P(2,1)    rows never leave it.
//
// p/c need not divide by c. The grid owns its communicators, which share one ledger.
#pragma once

#include <memory>

#include "espalier/comm/communicator.hpp"

namespace espalier {

class Grid {
 public:
  /// Collective over `world`. Throws UserError(kUsage), on every rank, when c does not divide p.
  Grid(const Communicator& world, int replication);

  int ranks() const { return world_.size(); }
  int replication() const { return replication_; }
  int rows() const { return world_.size() / replication_; }
  int row() const { return world_.rank() / replication_; }
  int column() const { return world_.rank() % replication_; }

  /// All p ranks in rank order.
  const Communicator& world() const { return world_; }
  /// P(i,:), the c holders of my block row; my rank in it is column().
  const Communicator& row_comm() const { return row_comm_; }
  /// P(:,j), one holder of each block row; my rank in it is row().
  const Communicator& column_comm() const { return column_comm_; }
  Traffic& traffic() const { return world_.traffic(); }
  /// The grid of host memory: itself.
  const Grid& host() const { return *this; }

 private:
  int replication_;
  Communicator world_;
  Communicator row_comm_;
  Communicator column_comm_;
};

}  // namespace espalier
