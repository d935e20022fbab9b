#include "espalier/sample/counted_work.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "distinct_curve.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "expected_work.hpp"
#include "spread_weights.hpp"

namespace espalier {

namespace {

// Counts of one rank's window and one layer, as far as minibatches were drawn. "Remote" ids lie in
// another block row than the owner rank's; another rank of its process row serves "foreign" ones.
// Of a row that is cut there is a piece with each holder, as if its entries were spread evenly
// over them.
struct LayerCount {
  double rows = 0, entries = 0, results = 0, picks = 0, pieces = 0, distinct_pieces = 0, merged = 0;
  // As all block rows, or all servers of a process row, send them.
  double sums = 0, served_sums = 0;
  double distinct = 0, distinct_entries = 0;
  double remote_distinct = 0, remote_distinct_entries = 0;
  double remote_rows = 0, remote_entries = 0, remote_results = 0, remote_sums = 0, remote_merged = 0;
  double foreign_rows = 0, foreign_entries = 0, foreign_results = 0, foreign_sums = 0;
};

// The same of a process row's window: what the owner ranks of a row want together, each id once.
struct UnionCount {
  double remote = 0, remote_entries = 0;
};

// Marks that need no clearing: an id is marked when its number is the current one.
class Marks {
 public:
  explicit Marks(std::int64_t ids) : last_(static_cast<std::size_t>(ids), 0) {}
  void begin() { ++current_; }
  bool add(std::int64_t id) {
    auto& last = last_[id];
    if (last == current_) return false;
    last = current_;
    return true;
  }

 private:
  std::vector<std::uint32_t> last_;
  std::uint32_t current_ = 0;
};

// A mean and its error.
struct Moments {
  double count = 0, sum = 0, squares = 0;
  void add(double x) {
    ++count;
    sum += x;
    squares += x * x;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  double standard_error() const {
    return count > 1 ? std::sqrt(std::max(0.0, squares / count - mean() * mean()) / (count - 1)) : 0;
  }
};

// ---- counting ----

template <class Index>
class EpochCount {
 public:
  EpochCount(const Cpu& cpu, const DistCsr<Index>& a, const PlannedEpoch& job, const ExampleSource& examples,
             const InputVisit& visit)
      : cpu_(cpu),
        a_(a),
        job_(job),
        visit_(visit),
        kind_(sampler_kind_of(job.sampler)),
        layers_(job.shape.fanout.size()),
        products_(products_of(job)),
        join_(join_of_draws(job.shape, a.columns.typed())),
        plan_(examples, {.batch_size = job.batch_size,
                         .batches_per_step = job.batches_per_step,
                         .ranks = job.ranks,
                         .seed = job.seed,
                         .epoch = job.epoch,
                         .groups = job.groups.get(),
                         .population = population_of(kind_, a.rows())}),
        blocks_(job.blocks(a.rows())),
        parts_(job.matrix_parts(a.rows())),
        servers_(block_partition(job.parts(), job.replication)),
        rank_marks_(layers_, Marks(a.rows())),
        row_marks_(layers_, Marks(a.rows())),
        sum_marks_(a.local.columns),
        sampler_(make_sampler(cpu, job.sampler, a, job.shape)) {
    ESPALIER_CHECK(a.parts() == 1, "{} parts of the matrix to plan with", a.parts());
  }

  EpochWork count(std::int64_t draw) {
    auto product = shape();
    product.copies = copies_of_entries();
    work_.schedules = choose_schedules(product, job_.shape, row_classes(a_, job_.shape), kind_);
    work_.batches = plan_.batches();
    work_.mean = work_.largest = {std::vector<double>(layers_ + 1, 0), std::vector<double>(layers_ + 1, 0)};
    work_.scanned.assign(layers_ + 1, 0);
    const auto tables = job_.tables.size();
    work_.remote_input_rows.assign(tables, std::vector<double>(static_cast<std::size_t>(job_.ranks), 0));
    work_.mean.fetched = work_.largest.fetched = std::vector<double>(tables, 0);
    fetched_rows_.resize(tables);
    work_.remote_edges.assign(static_cast<std::size_t>(job_.ranks), 0);
    if (job_.trains_embeddings)
      times_read_.assign(static_cast<std::size_t>(job_.tables.back().count(a_.rows())), 0);
    work_.window.assign(layers_, {});
    size_products(work_, job_);
    if (plan_.batches() <= draw)
      count_all();
    else
      count_some(draw);
    finish();
    return std::move(work_);
  }

 private:
  ProductShape shape() const {
    auto product =
        product_shape(job_, static_cast<double>(a_.rows()), static_cast<double>(a_.local.entries()),
                      sizeof(Index), a_.has_values ? 4 : 0);
    product.join = join_;
    return product;
  }
  // As count_rows() finds it; costs are of pieces that were counted.
  double copies_of_entries() const {
    if (!job_.holders) return 1;
    double copies = 0;
    for (std::int64_t v = 0; v < a_.rows(); ++v)
      copies += static_cast<double>(a_.local.row_size(v)) * std::popcount(job_.holders->of()(v));
    return copies / std::max(1.0, static_cast<double>(a_.local.entries()));
  }
  std::int64_t windows() const { return count_batches(plan_.batches(), job_.bulk); }
  double crossing_share(int group) const { return group > 1 ? crossing(group) : 1; }

  // ---- All minibatches: what lies where is known. A process row's share of a window at a time. --

  void count_all() {
    for (std::int64_t window = 0; window < windows(); ++window)
      for (int row = 0; row < job_.rows(); ++row) count_group(window, row);
  }

  void count_group(std::int64_t window, int row) {
    for (auto& marks : row_marks_) marks.begin();
    std::vector<UnionCount> together(layers_);
    std::vector<std::vector<LayerCount>> counts;
    const int first = row * job_.replication, c = job_.replication;
    for (int rank = first; rank < first + c; ++rank)
      counts.push_back(count_rank(rank, batches_of(window, rank), together));
    for (int rank = first; rank < first + c; ++rank) {
      const auto kept = std::ssize(batches_of(window, rank));
      const auto& of_rank = counts[rank - first];
      for (std::size_t k = 0; k < products_ && job_.parts() > 1; ++k)
        book(rank, k, counted_work(static_cast<double>(kept), of_rank[k], together[k]));
      remember_stack(kept, of_rank);
    }
  }

  std::vector<std::int64_t> batches_of(std::int64_t window, int rank) const {
    return plan_.kept_by(rank, window * job_.bulk, (window + 1) * job_.bulk);
  }

  // Draws batches of one rank's window, some at a time, and counts them.
  std::vector<LayerCount> count_rank(int rank, const std::vector<std::int64_t>& batches,
                                     std::vector<UnionCount>& together) {
    constexpr std::size_t kAtOnce = 8;
    std::vector<LayerCount> counts(layers_);
    for (auto& marks : rank_marks_) marks.begin();
    for (std::size_t from = 0; from < batches.size(); from += kAtOnce) {
      note_movement();
      const auto numbers = std::span(batches).subspan(from, std::min(kAtOnce, batches.size() - from));
      plan_.examples().prepare(a_.grid->world(), numbers);
      std::vector<SeedBatch> some;
      for (const auto batch : numbers) {
        some.push_back(plan_.batch(batch));
        plan_.examples().release(batch);
      }
      auto minibatches = sampler_->sample(cpu_, some, plan_.seed(), plan_.epoch());
      draws_.points += sampler_->spread_draws().points;
      draws_.rounds = std::max(draws_.rounds, sampler_->spread_draws().rounds);
      for (const auto& minibatch : minibatches) {
        note_size(minibatch, rank);
        if (job_.holders) note_copies(minibatch);
        if (visit_ && curves_.empty()) visit_(minibatch.number, rank, minibatch.vertices);
        if (job_.parts() == 1) continue;
        for (std::size_t k = 0; k < products_; ++k) count_layer(minibatch, k, rank, counts[k], together[k]);
      }
      exclude_edges(cpu_, some, minibatches);
      totals_.add(cpu_, minibatches);
    }
    return counts;
  }

  void note_size(const Minibatch& minibatch, int rank) {
    const auto note = [](MinibatchSize& mean, MinibatchSize& largest, std::size_t layer, double rows,
                         double entries) {
      mean.rows[layer] += rows;
      mean.entries[layer] += entries;
      largest.rows[layer] = std::max(largest.rows[layer], rows);
      largest.entries[layer] = std::max(largest.entries[layer], entries);
    };
    note(work_.mean, work_.largest, 0, static_cast<double>(std::ssize(minibatch.vertices)), 0);
    for (std::size_t layer = 1; layer <= layers_; ++layer) {
      const auto& block = minibatch.blocks[layer - 1];
      note(work_.mean, work_.largest, layer, static_cast<double>(block.rows),
           static_cast<double>(block.entries()));
    }
    double scanned = 0;
    std::int64_t at = 0;
    for (std::size_t layer = layers_; layer >= 1; --layer) {
      for (; at < minibatch.blocks[layer - 1].rows; ++at)
        scanned += static_cast<double>(a_.local.row_size(minibatch.vertices[at]));
      work_.scanned[layer] += scanned;
    }
    const int row = rank / job_.replication;
    for (std::size_t table = 0; table < job_.tables.size(); ++table) {
      std::int64_t remote = 0, fetched = 0;
      for (const auto v : minibatch.vertices) {
        if (!job_.tables[table].holds(v)) continue;
        ++fetched;
        if (job_.trains_embeddings && table + 1 == job_.tables.size())
          ++times_read_[static_cast<std::size_t>(job_.tables[table].number(v))];
        remote += blocks_.owner(v) != row;
      }
      work_.remote_input_rows[table][static_cast<std::size_t>(rank)] += static_cast<double>(remote);
      auto& largest = work_.largest.fetched[table];
      largest = std::max(largest, static_cast<double>(fetched));
      work_.mean.fetched[table] += static_cast<double>(fetched);
      fetched_rows_[table].add(static_cast<double>(fetched));
    }
    input_rows_.add(static_cast<double>(std::ssize(minibatch.vertices)));
    if (!job_.edges.empty()) note_edges(minibatch, rank);
  }

  void note_copies(const Minibatch& minibatch) {
    for (std::size_t layer = 1; layer <= layers_; ++layer)
      for (std::int64_t row = 0; row < minibatch.blocks[layer - 1].rows; ++row)
        copies_.add(std::popcount(job_.holders->of()(minibatch.vertices[row])));
  }

  void note_edges(const Minibatch& minibatch, int rank) {
    double all = 0, remote = 0;
    for (const auto& block : minibatch.blocks)
      for (std::int64_t row = 0; row < block.rows; ++row) {
        double read = 0;
        for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
          read += job_.edges[block.relation(e)];
        all += read;
        if (blocks_.owner(minibatch.vertices[row]) != rank / job_.replication) remote += read;
      }
    work_.remote_edges[static_cast<std::size_t>(rank)] += remote;
    work_.mean.edges += all;
    work_.largest.edges = std::max(work_.largest.edges, all);
  }

  // Where a row lies, as an owner rank in block row `row` sees it.
  struct Pieces {
    double all = 1, remote = 0;
    bool first_is_remote = false;
    double away() const { return remote / all; }
  };
  Pieces pieces_of(std::int64_t v, int owner, int row) const {
    if (!job_.holders) return {1, owner != row ? 1.0 : 0.0, owner != row};
    const auto set = job_.holders->of()(v);
    const auto all = static_cast<double>(std::popcount(set));
    return {all, all - static_cast<double>(set >> row & 1), std::countr_zero(set) != row};
  }
  // What a row in so many pieces answers in layer k: the picks, or the candidates of each piece.
  double answers_of(std::size_t k, double picks, double entries, const Pieces& pieces) const {
    if (join_ != JoinPieces::kMerge || pieces.all < 2 || job_.shape.fanout[k] < 0) return picks;
    const auto of_piece = std::min(entries / pieces.all, static_cast<double>(job_.shape.fanout[k]));
    return std::max(picks, pieces.all * of_piece + (job_.shape.aggregation == Aggregation::kMatrix ? 1 : 0));
  }

  // Product number k (first: next to the batch) of one minibatch.
  void count_layer(const Minibatch& minibatch, std::size_t k, int rank, LayerCount& count,
                   UnionCount& together) {
    const auto& block = minibatch.blocks[layers_ - 1 - k];
    const int row = rank / job_.replication, column = rank % job_.replication;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const auto v = minibatch.vertices[r];
      const int part = parts_.owner(v);
      const bool foreign = servers_.owner(part) != column;
      const auto pieces = pieces_of(v, part, row);
      const auto entries = static_cast<double>(a_.local.row_size(v)),
                 results = answers_of(k, static_cast<double>(block.row_size(r)), entries, pieces);
      count.rows += 1;
      count.entries += entries;
      count.results += results;
      count.pieces += pieces.all;
      count.merged += pieces.all > 1;
      count.remote_merged += pieces.all > 1 && pieces.first_is_remote;
      count.remote_rows += pieces.remote;
      count.remote_entries += entries * pieces.away();
      count.remote_results += results * pieces.away();
      if (foreign) {
        count.foreign_rows += 1;
        count.foreign_entries += entries;
        count.foreign_results += results;
      }
      if (rank_marks_[k].add(v)) {
        count.distinct += 1;
        count.distinct_entries += entries;
        count.distinct_pieces += pieces.all;
        count.remote_distinct += pieces.remote;
        count.remote_distinct_entries += entries * pieces.away();
      }
      if (!curves_.empty()) curves_[k].add(v);
      if (!row_marks_[k].add(v)) continue;
      together.remote += pieces.remote;
      together.remote_entries += entries * pieces.away();
    }
    if (!kind_.layer_wise) return;
    count.picks += kind_.induces ? count_own_columns(minibatch) : count_picks(block, k);
    if (kind_.sums_rows) count_sums(minibatch, block.rows, row, column, count);
  }

  // Columns of a minibatch's vertices, in all relations.
  double count_own_columns(const Minibatch& minibatch) {
    const auto columns = a_.columns.view();
    if (columns.begins == nullptr) return static_cast<double>(std::ssize(minibatch.vertices));
    std::int64_t count = 0;
    for (int r = 0; r < columns.relations; ++r)
      count += std::ranges::count_if(minibatch.vertices, [&](std::int64_t v) {
        const auto column = v - columns.shifts[r];
        return columns.begins[r] <= column && column < columns.begins[r + 1];
      });
    return static_cast<double>(count);
  }

  // Columns that were picked: with a sum of rows each of them meets a row of the frontier.
  double count_picks(const BlockView<Cpu>& block, std::size_t k) {
    if (const auto columns = sampler_->columns_of_layer(k); columns >= 0) return static_cast<double>(columns);
    std::vector<bool> met(block.columns, false);
    for (std::int64_t row = 0; row < block.rows; ++row)
      for (const auto column : block.row_indices(row)) met[column] = true;
    return static_cast<double>(std::count(met.begin(), met.end(), true));
  }

  // Entries of the partial sums that each owner, or each server of the process row, sends.
  void count_sums(const Minibatch& minibatch, std::int64_t rows, int row, int column, LayerCount& count) {
    by_part_.assign(job_.parts(), {});
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto v = minibatch.vertices[r];
      const auto entries = a_.local.row_indices(v);
      if (!job_.holders) {
        by_part_[parts_.owner(v)].push_back(entries);
        continue;
      }
      const auto set = job_.holders->of()(v);
      std::int64_t piece = 0;
      for_each_part(set, [&](int part) {
        const auto share = even_range(std::ssize(entries), std::popcount(set), piece++);
        by_part_[part].push_back(entries.subspan(share.begin, share.size()));
      });
    }
    const auto add_columns = [&](int part) {
      double fresh = 0;
      for (const auto entries : by_part_[part])
        for (const auto u : entries) fresh += sum_marks_.add(u);
      return fresh;
    };
    for (int part = 0; part < job_.parts(); ++part) {
      sum_marks_.begin();
      const double sums = add_columns(part);
      count.sums += sums;
      if (part != row) count.remote_sums += sums;
    }
    for (int server = 0; server < job_.replication && job_.replication > 1; ++server) {
      sum_marks_.begin();
      double sums = 0;
      for (int part = servers_.begin(server); part < servers_.end(server); ++part) sums += add_columns(part);
      count.served_sums += sums;
      if (server != column) count.foreign_sums += sums;
    }
  }

  using WorkOfSchedules = std::array<ProductWork, kMovingSchedules.size()>;

  WorkOfSchedules counted_work(double kept, const LayerCount& count, const UnionCount& together) const {
    const double down = crossing_share(job_.parts()), along = crossing_share(job_.replication);
    ProductWork pull, push, staged;
    pull.batches = push.batches = staged.batches = kept;
    pull.distinct = count.remote_distinct / down;
    pull.distinct_entries = count.remote_distinct_entries / down;
    push.rows = count.remote_rows / down;
    push.row_entries = count.remote_entries / down;
    push.results = count.remote_results / down;
    push.merged = count.remote_merged / down;
    push.result_value_bytes = has_result_values(job_) ? 4 : 0;
    push.sums = count.remote_sums / down;
    push.picks = staged.picks = count.picks;
    staged.rows = count.foreign_rows / along;
    staged.row_entries = count.foreign_entries / along;
    staged.results = count.foreign_results / along;
    staged.sums = count.foreign_sums / along;
    // The c ranks of a process row fetch what its owner ranks want, each from its own stages.
    staged.distinct = together.remote / down / job_.replication;
    staged.distinct_entries = together.remote_entries / down / job_.replication;
    return {pull, push, staged, staged};
  }

  void book(int rank, std::size_t k, const WorkOfSchedules& work) {
    for (std::size_t s = 0; s < kMovingSchedules.size(); ++s) {
      work_.products[s][k][rank] += product_cost(kMovingSchedules[s], shape(), work[s]);
    }
  }

  void remember_stack(std::int64_t kept, const std::vector<LayerCount>& counts) {
    work_.stacked = std::max(work_.stacked, kept);
    for (std::size_t k = 0; k < layers_; ++k) {
      auto& most = work_.window[k];
      most.distinct = std::max(most.distinct, counts[k].distinct);
      most.distinct_entries = std::max(most.distinct_entries, counts[k].distinct_entries);
      most.row_entries = std::max(most.row_entries, counts[k].entries);
      most.sums = std::max(most.sums, counts[k].sums);
    }
  }

  // ---- Some minibatches, spread over the epoch: means, and ids spread evenly. ----

  void count_some(std::int64_t draw) {
    curves_.assign(layers_, DistinctCurve(a_.rows()));
    std::vector<UnionCount> together(layers_);
    mean_.assign(layers_, {});
    std::vector<std::int64_t> some;
    for (std::int64_t k = 0; k < draw; ++k) some.push_back(k * plan_.batches() / draw);
    mean_ = count_rank(0, some, together);
    for (auto& count : mean_)
      for (double* number : {&count.rows, &count.entries, &count.results, &count.picks, &count.pieces,
                             &count.merged, &count.sums, &count.served_sums})
        *number /= static_cast<double>(draw);
    for (auto& of_table : work_.remote_input_rows) std::ranges::fill(of_table, 0.0);
    std::ranges::fill(work_.remote_edges, 0.0);
    const double edges = work_.mean.edges / static_cast<double>(draw);
    const double remote = job_.rows() > 1 ? crossing(job_.rows()) : 0;
    for (std::int64_t window = 0; window < windows(); ++window)
      for (int rank = 0; rank < job_.ranks; ++rank) {
        const auto kept = std::ssize(batches_of(window, rank));
        const auto r = static_cast<std::size_t>(rank);
        for (std::size_t table = 0; table < job_.tables.size(); ++table)
          work_.remote_input_rows[table][r] +=
              remote * fetched_rows_[table].mean() * static_cast<double>(kept);
        work_.remote_edges[r] += remote * edges * static_cast<double>(kept);
        for (std::size_t k = 0; k < products_ && job_.parts() > 1; ++k)
          book(rank, k, expected_work_of(static_cast<double>(kept), k));
        if (kept > work_.stacked) remember_expected_stack(kept);
      }
  }

  WorkOfSchedules expected_work_of(double kept, std::size_t k) {
    const auto& mean = mean_[k];
    ProductWork pull, push, staged;
    pull.batches = push.batches = staged.batches = kept;
    std::tie(pull.distinct, pull.distinct_entries) = distinct_of(kept, k);
    pull.distinct *= mean.distinct_pieces / std::max(mean.distinct, 1.0);
    push.rows = kept * mean.pieces;
    push.row_entries = kept * mean.entries;
    staged.rows = kept * mean.rows;
    push.results = staged.results = kept * mean.results;
    push.merged = kept * mean.merged;
    push.result_value_bytes = has_result_values(job_) ? 4 : 0;
    push.picks = staged.picks = kept * mean.picks;
    push.sums = kept * mean.sums;
    staged.sums = kept * mean.served_sums;
    staged.row_entries = kept * mean.entries;
    const auto together = distinct_of(kept * job_.replication, k);
    staged.distinct = together.first / job_.replication;
    staged.distinct_entries = together.second / job_.replication;
    return {pull, push, staged, staged};
  }

  // Windows are alike, and so are ranks: few numbers of batches occur.
  std::pair<double, double> distinct_of(double batches, std::size_t k) {
    if (kind_.induces) {  // batches have no vertex in common, and together all
      const auto share = batches / static_cast<double>(plan_.batches());
      return {share * static_cast<double>(a_.rows()), share * static_cast<double>(a_.local.entries())};
    }
    const auto known = known_distinct_.find({batches, k});
    if (known != known_distinct_.end()) return known->second;
    const auto distinct = curves_[k].at(batches, static_cast<double>(totals_.batches), [&](std::int64_t v) {
      return static_cast<double>(a_.local.row_size(v));
    });
    return known_distinct_[{batches, k}] = distinct;
  }

  void remember_expected_stack(std::int64_t kept) {
    work_.stacked = kept;
    for (std::size_t k = 0; k < products_; ++k) {
      const auto batches = static_cast<double>(kept);
      auto& of_layer = work_.window[k];
      if (job_.parts() > 1) std::tie(of_layer.distinct, of_layer.distinct_entries) = distinct_of(batches, k);
      of_layer.row_entries = batches * mean_[k].entries;
      of_layer.sums = batches * mean_[k].sums;
    }
  }

  // Sums over what was drawn become those of the epoch.
  void finish() {
    work_.drawn = totals_.batches;
    const double drawn = std::max<double>(1, static_cast<double>(totals_.batches));
    const double all = static_cast<double>(work_.batches), scale = all / drawn;
    for (auto* sizes : {&work_.mean.rows, &work_.mean.entries, &work_.mean.fetched, &work_.scanned})
      for (auto& size : *sizes) size /= drawn;
    work_.mean.edges /= drawn;
    for (const auto times : times_read_) expect_changes(times / drawn, job_, work_);
    work_.sampled_edges = static_cast<double>(totals_.sampled_edges) * scale;
    work_.input_rows = static_cast<double>(totals_.input_rows) * scale;
    if (totals_.batches == work_.batches) work_.digest = totals_.digest;
    if (copies_.count > 0) work_.copies = copies_.mean();
    const double unseen = std::sqrt(std::max(0.0, 1 - drawn / all));
    work_.relative_error = input_rows_.standard_error() / std::max(input_rows_.mean(), 1e-9) * unseen;
    if (!kind_.spreads_weights || job_.parts() == 1) return;
    // Every rank takes part in every round of a window: a maximum, and points to their owners.
    const auto rounds = static_cast<double>(draws_.rounds * windows());
    const auto points = static_cast<double>(draws_.points) * scale / job_.ranks;
    auto cost = find_cost(job_.parts(), 0);
    work_.draws.bytes = rounds * cost.bytes + find_cost(job_.parts(), points).bytes - cost.bytes +
                        (rounds + static_cast<double>(windows())) * 16 * crossing(job_.parts());
    work_.draws.messages =
        rounds * cost.messages + (rounds + static_cast<double>(windows())) * 2 * (job_.parts() - 1);
    work_.draws.rounds = rounds * cost.rounds + rounds + static_cast<double>(windows());
  }

  const Cpu& cpu_;
  const DistCsr<Index>& a_;
  const PlannedEpoch& job_;
  const InputVisit& visit_;
  const SamplerKind& kind_;
  std::size_t layers_, products_;
  JoinPieces join_;
  EpochPlan plan_;
  Ownership blocks_, parts_;  // of features, of the matrix
  RowPartition servers_;      // of parts over a row's columns
  std::vector<Marks> rank_marks_, row_marks_;
  Marks sum_marks_;
  std::vector<std::vector<std::span<const Index>>> by_part_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<LayerCount> mean_;  // of a minibatch, where some were drawn
  std::vector<DistinctCurve> curves_;
  std::map<std::pair<double, std::size_t>, std::pair<double, double>> known_distinct_;
  SpreadDraws draws_;  // of all batches; the most rounds
  SampleCounts totals_;
  Moments input_rows_, copies_;
  std::vector<Moments> fetched_rows_;     // of each table
  std::vector<std::int32_t> times_read_;  // of each row that is learnt
  EpochWork work_;
};

}  // namespace

template <class Index>
EpochWork count_epoch(const Cpu& cpu, const DistCsr<Index>& a, const PlannedEpoch& job,
                      const ExampleSource& examples, std::int64_t draw, const InputVisit& visit) {
  return EpochCount<Index>(cpu, a, job, examples, visit).count(draw);
}

template EpochWork count_epoch(const Cpu&, const DistCsr<std::int32_t>&, const PlannedEpoch&,
                               const ExampleSource&, std::int64_t, const InputVisit&);
template EpochWork count_epoch(const Cpu&, const DistCsr<std::int64_t>&, const PlannedEpoch&,
                               const ExampleSource&, std::int64_t, const InputVisit&);

}  // namespace espalier
