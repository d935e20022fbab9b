// Files of edges as text: lines "source target", and perhaps a weight and a time, ids from 0; and
// the coordinate format of Matrix Market.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/file/line_reader.hpp"
#include "espalier/graph/edge_source.hpp"
#include "labelled_splits.hpp"

namespace espalier {

// Edges on their way from a file to whoever takes them in pieces.

/// A weight as the graph file stores it; counts one that becomes 0. Calls `fail` with the words
/// where it cannot be one.
template <class Fail>
float stored_weight(double value, Fail fail, std::int64_t& vanished) {
  const auto weight = static_cast<float>(value);
  if (!(weight >= 0 && std::isfinite(weight)))
    fail(fmt::format("weight {} is not a finite number of at least 0", value));
  vanished += weight == 0 && value != 0;
  return weight;
}

class EdgePieces {
 public:
  EdgePieces(bool weighted, const std::function<void(const EdgePiece&)>& use, bool timed = false,
             bool marked = false)
      : weighted_(weighted), timed_(timed), marked_(marked), use_(use) {
    sources_.reserve(kMost);
    targets_.reserve(kMost);
    if (weighted) weights_.reserve(kMost);
    if (timed) times_.reserve(kMost);
  }
  void add(std::int64_t source, std::int64_t target, float weight, std::int64_t time = 0,
           std::uint8_t mark = 0) {
    if (sources_.size() == kMost) finish();
    sources_.push_back(source);
    targets_.push_back(target);
    if (weighted_) weights_.push_back(weight);
    if (timed_) times_.push_back(time);
    if (marked_) marks_.push_back(mark);
  }
  /// For stored_weight() of an edge that is added next.
  std::int64_t& vanished() { return vanished_; }
  /// Hands over what is left.
  void finish() {
    if (!sources_.empty()) use_({sources_, targets_, weights_, std::exchange(vanished_, 0), times_, marks_});
    sources_.clear();
    targets_.clear();
    weights_.clear();
    times_.clear();
    marks_.clear();
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 14;

  bool weighted_, timed_, marked_;
  const std::function<void(const EdgePiece&)>& use_;
  std::vector<std::int64_t> sources_, targets_;
  std::vector<float> weights_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint8_t> marks_;
  std::int64_t vanished_ = 0;
};

// Lines of two whole numbers and perhaps a value and a time, in any order, apart by blanks, tabs or
// a comma: edge lists and the entries of Matrix Market files. Lines that begin with a comment's
// letter, and empty ones, are passed over.

/// What a field of a line is: a whole number, but for the value.
enum class PairField { kFirst, kSecond, kValue, kTime };

/// What stands on a line.
struct PairForm {
  std::string comments = "#%";              ///< letters that a comment begins with
  std::string names = "source and target";  ///< of the fields, for messages
  std::vector<PairField> fields = {PairField::kFirst, PairField::kSecond};
  std::string hint = {};            ///< where a line has too many fields: what may help
  std::string no_number_hint = {};  ///< where a field is no number
};

class PairReader {
 public:
  /// Goes on with the next line of `lines`, which must outlive it.
  PairReader(LineReader& lines, PairForm form) : lines_(lines), form_(std::move(form)) {}

  /// Moves to the next pair; false at the end of the file. Throws UserError(kInput) with file and
  /// line where a line is something else.
  bool next();
  std::int64_t first() const { return first_; }
  std::int64_t second() const { return second_; }
  /// "nan" and "inf" are numbers here, the caller decides.
  double value() const { return value_; }
  std::int64_t time() const { return time_; }

  const LineReader& lines() const { return lines_; }

 private:
  bool read(const char* at, const char* end);
  [[noreturn]] void refuse() const;

  LineReader& lines_;
  PairForm form_;
  std::int64_t first_ = 0, second_ = 0, time_ = 0;
  double value_ = 1;
};

struct EdgeTextOptions {
  std::string path;
  PairForm form = {};
  VertexCount sources = {-1, ""}, targets = {-1, ""};  ///< ids are below it; -1: nobody said so
  bool any_ids = false;                                ///< may ids be larger than a graph
                                                       ///< has vertices?
  std::int64_t part = 0;                               ///< bytes that a rank reads at a time, of a
                                                       ///< text that is not packed; 0: a few MiB
};

/// Edges in the lines of a text, of which each rank reads parts where it is not packed.
class EdgeLines : public EdgeSource {
 public:
  std::string name() const override { return options_.path; }
  std::string place(std::int64_t edge) const override;
  void read(const std::function<void(const EdgePiece&)>& use) const override;
  void read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const override;

 protected:
  explicit EdgeLines(EdgeTextOptions options) : options_(std::move(options)) {}
  /// Adds the edges of a line.
  virtual void add(const PairReader& line, EdgePieces& pieces) const = 0;
  virtual std::int64_t edges_of(const PairReader&) const { return 1; }
  bool has(PairField field) const;
  /// The value of a line; `hint`: what may help where it is no weight.
  static float weight_of(const PairReader& line, EdgePieces& pieces, const char* hint = "");

  EdgeTextOptions options_;
  std::int64_t head_lines_ = 0, head_bytes_ = 0;  ///< before the lines of edges
  std::int64_t announced_ = -1;                   ///< so many lines; -1: nobody said so

 private:
  /// Returns how many lines had edges.
  std::int64_t read_lines(LineReader& lines, const std::function<void(const EdgePiece&)>& use) const;
  void pass_head(LineReader& lines) const;
};

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options);

// A matrix in the coordinate format of Matrix Market (Boisvert, Pozo, Remington 1996, NISTIR 5935):
//
//     %%MatrixMarket matrix coordinate real general
//     % comments
//     ROWS COLUMNS ENTRIES
//     i j value                   ENTRIES times, counted from 1
//
// It is the adjacency matrix as it stands: entry (i, j), in row i and column j, is an edge from
// vertex j - 1 to vertex i - 1. Of a symmetric one entries off the diagonal stand for both
// directions. Pattern, integer and real matrices can be read, general and symmetric ones.

class MatrixMarket : public EdgeLines {
 public:
  /// Reads the header; `values`: they are the weights, where the matrix has any; `part`: as of
  /// EdgeTextOptions. Throws UserError(kInput) with file and line.
  MatrixMarket(const std::string& path, bool values, std::int64_t part = 0);
  std::int64_t nodes() const { return nodes_; }
  bool symmetric() const { return symmetric_; }
  bool weighted() const override { return weighted_; }

 private:
  void add(const PairReader& line, EdgePieces& pieces) const override;
  std::int64_t edges_of(const PairReader& line) const override {
    return symmetric_ && line.first() != line.second() ? 2 : 1;
  }

  bool weighted_ = false, symmetric_ = false;
  std::int64_t nodes_ = 0;
};

}  // namespace espalier
