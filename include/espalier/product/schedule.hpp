// The schedules of the distributed product, and the alpha-beta model that chooses among them.
//
// A message of n bytes takes alpha + n beta: `latency_us` and 1 / `bandwidth_gbs`. With ids spread
// evenly over the block rows, an id that a rank of a group of g asks for lies with another rank
// with probability (g-1)/g: 1 - c/p down a process column, (c-1)/c along a process row (design,
// section 6; Tripathy et al. 2024, section 5.2.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/base/footprint.hpp"
#include "espalier/comm/grid.hpp"

namespace espalier {

enum class Schedule { kAuto, kStaged, kStagedOblivious, kPull, kPush };

/// "auto", "staged", "staged-oblivious", "pull", "push". Throws UserError(kUsage) for another name.
Schedule schedule_of(const std::string& name);
const char* name_of(Schedule schedule);
/// Does it bring rows that lie in pieces with several ranks? The staged ones take whole
/// rows from one.
inline bool takes_pieces(Schedule schedule, bool on_gpu) {
  return schedule == Schedule::kPull || (schedule == Schedule::kPush && !on_gpu);
}

/// How results of an operation on the pieces of a row that is cut become those of the row.
enum class JoinPieces {
  kNever,        ///< they do not: pieces travel whole
  kConcatenate,  ///< those of pieces together are those of the row
  kMerge,        ///< they are candidates, of which some stay
};

/// The network as the model sees it, per rank.
struct Link {
  double latency_us = 0;
  double bandwidth_gbs = 0;
  double seconds(double messages, double bytes) const {
    return messages * latency_us * 1e-6 + bytes / (bandwidth_gbs * 1e9);
  }
};

/// What kAuto goes by. Whoever knows a network better names its schedule in grid.schedule.
inline constexpr Link kUsualLink = {.latency_us = 2, .bandwidth_gbs = 10};

/// The shape of the grid and of A, as far as volumes depend on it.
struct ProductShape {
  int parts = 1;        ///< p/c
  int replication = 1;  ///< c
  double rows = 0;      ///< n
  double entries = 0;   ///< of A
  int index_bytes = 4;
  int value_bytes = 0;  ///< of an entry of A: 0 or 4
  bool cut = false;     ///< may rows lie with several parts?
  bool on_gpu = false;  ///< are they joined on GPUs?
  double copies = 1;    ///< then: with how many, those that are asked for
  JoinPieces join = JoinPieces::kConcatenate;
};

/// What one rank needs of one product, wherever it lies.
struct ProductWork {
  double batches = 0;
  double rows = 0;              ///< of Q: frontier vertices of all its batches
  double row_entries = 0;       ///< of A, in those rows
  double distinct = 0;          ///< different vertices among them
  double distinct_entries = 0;  ///< of A, in those
  double results = 0;           ///< entries after the operation: picks, and candidates
  double merged = 0;            ///< rows whose candidates are merged
  int result_value_bytes = 0;   ///< beside each result
  double sums = 0;              ///< entries of sums, as the owners send them; 0: none is wanted
  double picks = 0;             ///< columns to select, over all batches; 0: none are
};

/// Messages and bytes that one rank receives, and in how many rounds (comm/traffic.hpp).
struct Cost {
  double messages = 0;
  double bytes = 0;
  double rounds = 0;
};
inline Cost& operator+=(Cost& cost, const Cost& other) {
  cost.messages += other.messages;
  cost.bytes += other.bytes;
  cost.rounds += other.rounds;
  return cost;
}
inline Cost operator*(double times, const Cost& cost) {
  return {times * cost.messages, times * cost.bytes, times * cost.rounds};
}

/// Books what is expected beside what will be counted under `label`.
inline void predict(Traffic& traffic, std::string_view label, const Cost& cost) {
  traffic.predict(label, cost.messages, cost.bytes);
}

/// (group-1)/group: the share of evenly spread ids that lie with another rank of a group.
inline double crossing(int group) {
  return static_cast<double>(group - 1) / group;
}

/// The cost of a product by a schedule (not kAuto).
Cost product_cost(Schedule schedule, const ProductShape& shape, const ProductWork& work);

/// The cheapest of staged, pull and push.
Schedule choose_schedule(const Link& link, const ProductShape& shape, const ProductWork& work);

/// Offsets, ids and values of so many rows (Entries).
Footprint entries_footprint(double rows, double entries, double id_bytes, double value_bytes);

/// What a product (product.hpp) holds on a rank beside the matrix. `work.rows`, `row_entries`,
/// `distinct`, `distinct_entries`, `results`: of all rows. `selects`: results are places.
Footprint product_footprint(Schedule schedule, const ProductShape& shape, const ProductWork& work,
                            bool selects, int threads);

}  // namespace espalier
