// A machine as the alpha-beta-gamma model sees it: what a node holds, what a message and a byte
// cost, how fast one rank does each kind of work. `espalier calibrate` measures and writes such a
// file; inputs/machines/ holds some.
//
// Rates are those of one rank with all of its threads (or its GPU), while the other ranks of the
// node work too.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/comm/session.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

struct Machine {
  std::string name;
  std::string device = "cpu";          ///< cpu | cuda: what computes
  std::int64_t ranks_per_node = 1;     ///< as many as the rates were measured with
  std::string distribution = "block";  ///< block | cyclic: how ranks are dealt to nodes, node
                                       ///< after node or round them
  std::int64_t threads = 1;            ///< of a rank
  std::string core_splits = {};        ///< ranks x threads that were measured (core_splits.hpp)
  std::string memory = "0";            ///< of a node, for all of its ranks
  std::string device_memory = "none";  ///< of a rank's GPU

  Link network{2, 10};  ///< between nodes, per rank
  Link inside{1, 10};   ///< inside a node, per rank

  // Work per second of a rank.
  double draws = 0;        ///< M picks drawn and put into blocks
  double entries = 0;      ///< M entries of whole rows summed, searched or weighed (all sampling
                           ///< but uniform draws)
  double rows_gbs = 0;     ///< GB of feature rows copied from anywhere
  double spmm_gbs = 0;     ///< GB of dense rows gathered by a block times a matrix
  double gemm_gflops = 0;  ///< of products of tall matrices, in float32
  double gemm_tf32_gflops = 0, gemm_bf16_gflops = 0;  ///< in train.precision "tf32", "bf16"; 0: as
                                                      ///< in float32
  double elements_gbs = 0;                            ///< GB of activations passed by ReLU,
                                                      ///< dropout and loss
  double parameters = 0;                              ///< M parameters updated by the optimiser
  double gradients = 0;                               ///< M numbers of a gradient packed
                                                      ///< and added up
  double disk_gbs = 0;  ///< GB of chunks of rows read from a disk, here and there;
                        ///< 0: not known
};

/// The rate of its products in a train.precision.
double gemm_rate(const Machine& machine, const std::string& precision);

/// Reads a machine file. Throws UserError(kUsage) that says what is wrong and where: not a machine
/// file, another version, an unknown key (naming the nearest), a missing or wrong value.
Machine read_machine(const std::string& path);

/// Is this the text of a machine file, of any version, be its values right or wrong?
bool is_machine(const std::string& text);

/// The text of a machine file. `about`: comment lines at its head.
std::string to_toml(const Machine& machine, const std::string& about);

/// What a message and a byte cost a rank, of so many of a job, in a group of `group` ranks,
/// neighbours of which lie `stride` ranks apart: the mean over the others, of which some are on its
/// node.
Link link_of(const Machine& machine, std::int64_t ranks, std::int64_t group, std::int64_t stride);

// What a message, a byte and each kind of work cost on this machine (plan/machine.hpp).
//
// All ranks work at once, as in a job, and what is measured is their mean; of several repetitions
// the least disturbed counts. The operations are those that a job spends its time in, on a graph
// and matrices larger than the caches. alpha and beta come from exchanges among all ranks of a
// node, and among ranks of different nodes: 8 bytes to each, then megabytes.

/// Collective. Fills in the links and rates, with machine.threads on each rank; the disk's is of
/// `folder`, 0 where a rank cannot write to it. One rank alone leaves the links as they are.
void measure_machine(const Communicator& world, const NodePlace& node, const std::string& folder,
                     Machine& machine);

}  // namespace espalier
