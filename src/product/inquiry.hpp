// A stacked frontier asked of the ranks of a group, batch by batch, and the ways of answering.
//
// The keeper sends every vertex of its frontiers to the rank that serves it, with a line (batch number, rows)
// for each batch: the server knows which rows belong to which batch of whom. Nothing is asked twice, so answers
// need no ids: they come in the order of the question. `push` asks the owners down a process column, `staged`
// asks along a process row.
//
//   keeper                                 server
//   [batch, rows] ..., ids             ──► lines, ids                      label/ids
//   results of each row                ◄── sizes, indices, values          `back`
//   partial sums of each batch         ◄── columns, sums                   label/reduction
//   columns to select, of each batch   ──► picks                           label/picks
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "espalier/product/product.hpp"

namespace espalier {

template <class Index>
class Inquiry {
 public:
  /// Collective over `group`. server_of(v): the rank of the group that serves vertex v. `q` must outlive this.
  Inquiry(const Communicator& group, const StackedFrontier& q,
          const std::function<int(std::int64_t)>& server_of, const ProductShape& shape,
          const std::string& label);

  // ---- As a server: what the others want of me -------------------------------------------------------------

  const Buffer<Index>& asked() const { return asked_; }
  /// [lines + 1]: the rows of each (asker, batch) in asked().
  std::span<const std::int64_t> segments() const { return segments_; }
  const std::vector<RowKey>& keys() const { return keys_; }

  // ---- As a keeper: where the answers to my rows are -------------------------------------------------------

  /// Place of row q among the answers.
  std::span<const std::int64_t> place_of() const { return place_of_; }

  // ---- Both: collective over the group ---------------------------------------------------------------------

  /// Sends answers[r] for every row r of asked() and returns the answers to my rows in the order of the
  /// question. `values`: do answers hold values, anywhere? `back`: the label.
  template <class Id>
  RowEntries<Id> send_back(const RowEntries<Id>& answers, bool values, const std::string& back) const;

  /// Sends partial[s] for every segment s; visits the sum over all servers of each of my batches.
  void reduce(const Cpu& cpu, const std::vector<SparseSum<Index>>& partial, std::int64_t columns,
              const SumVisitor<Index>& visit) const;

  /// Sends the columns of each of my batches to all who serve a row of it; returns one list per segment.
  /// `storage` holds what the lists refer to.
  std::vector<std::span<const Index>> send_picks(std::span<const std::span<const Index>> columns,
                                                 Buffer<Index>& storage) const;

 private:
  struct Line {
    std::int64_t batch, rows;
  };
  /// How many lines I send to each server.
  std::vector<std::int64_t> line_counts() const;

  const Communicator& group_;
  ProductShape shape_;
  std::string label_;
  double rows_ = 0, batches_ = 0;
  // Of the question: rows for each server, and the batches (by place in q) that each server has rows of.
  std::vector<std::int64_t> counts_;
  std::vector<std::vector<std::int64_t>> batches_of_;
  Buffer<std::int64_t> place_of_;
  // Of what is asked of me.
  std::vector<std::int64_t> asked_counts_, asked_lines_;
  Buffer<Index> asked_;
  std::vector<std::int64_t> segments_ = {0};
  std::vector<RowKey> keys_;
};

/// Answers, in the order of the question, put into the order of Q's rows.
template <class Id>
RowEntries<Id> in_order(const Cpu& cpu, const RowEntries<Id>& answers,
                        std::span<const std::int64_t> place_of);

}  // namespace espalier
