#include "espalier/infer/prediction_list.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <tuple>

#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/csv.hpp"

namespace espalier {

namespace {

constexpr const char* kLabel = "infer";
constexpr std::int64_t kPiece = 1 << 14;  // vertices

/// A text file on rank 0, beside its place until it is whole.
class TextOutput {
 public:
  explicit TextOutput(const OutputFile& output)
      : output_(output), partial_(output.path), temporary_(partial_.name()), watched_(temporary_) {
    check_output(output_);
    file_ = std::fopen(temporary_.c_str(), "w");
    if (file_ == nullptr) usage_error("cannot create {}: {}", temporary_, std::strerror(errno));
    partial_.hold();
  }
  ~TextOutput() {
    if (file_ != nullptr) std::fclose(file_);
    if (!finished_) unlink(temporary_.c_str());
  }
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail();
  }
  void commit() {
    if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail();
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail();
    finished_ = true;  // put_in_place keeps it where its place was taken
    put_in_place(temporary_, output_);
  }

 private:
  [[noreturn]] void fail() const {
    usage_error("cannot write {}: {}; is the disk full?", output_.path, std::strerror(errno));
  }

  OutputFile output_;
  PartialFile partial_;
  std::string temporary_;
  TemporaryFile watched_;
  std::FILE* file_ = nullptr;
  bool finished_ = false;
};

std::string name_or_number(const std::vector<std::string>& names, std::int64_t number) {
  return number < std::ssize(names) ? csv_field(names[number]) : std::to_string(number);
}

}  // namespace

void PredictionList::reserve(std::int64_t vertices) {
  const auto most = table_.chosen ? std::ssize(*table_.chosen) : table_.vertices.size();
  own_.reserve(static_cast<std::size_t>(std::min(vertices, most)));
}

void PredictionList::add(std::int64_t first, const Matrix<float>& logits) {
  for (std::int64_t k = 0; k < logits.rows; ++k) {
    const auto vertex = first + k - table_.vertices.begin;
    if (vertex < 0 || vertex >= table_.vertices.size()) continue;
    if (table_.chosen && !std::ranges::binary_search(*table_.chosen, vertex)) continue;
    add_row(vertex, logits.row(k), logits.columns);
  }
}

void PredictionList::add_row(std::int64_t vertex, const float* logits, std::int64_t columns) {
  if (several_labels_) {
    for (std::int64_t c = 0; c < columns; ++c)
      if (logits[c] > 0)
        own_.push_back({vertex, 1 / (1 + exp_of_nonpositive(-static_cast<double>(logits[c]))),
                        static_cast<std::int32_t>(c)});
    return;
  }
  const auto* largest = std::max_element(logits, logits + columns);
  double sum = 0;
  for (std::int64_t c = 0; c < columns; ++c)
    sum += exp_of_nonpositive(static_cast<double>(logits[c]) - static_cast<double>(*largest));
  own_.push_back({vertex, 1 / sum, static_cast<std::int32_t>(largest - logits)});
}

// Of the pieces that have chosen vertices.
std::vector<std::int64_t> PredictionList::beginnings_of_pieces() const {
  std::vector<std::int64_t> begins;
  if (!table_.chosen)
    for (std::int64_t begin = 0; begin < table_.vertices.size(); begin += kPiece) begins.push_back(begin);
  else
    for (const auto vertex : *table_.chosen)
      if (begins.empty() || vertex >= begins.back() + kPiece) begins.push_back(vertex / kPiece * kPiece);
  return begins;
}

std::int64_t PredictionList::write(const Communicator& comm, const GraphFile& file, int type,
                                   const OutputFile& output) {
  const bool root = comm.rank() == 0, has_ids = file.info().types[type].ids != IdKind::kNone;
  const auto& of = file.info().schema.types()[type];
  const auto names = file.read_texts(Column::kClassNames, type, 0, file.info().types[type].class_names);
  std::unique_ptr<TextOutput> text;
  agree(comm, [&] {
    if (!root) return;
    text = std::make_unique<TextOutput>(output);
    text->write("id,class,probability\n");
  });
  const auto order = [](const Prediction& p) { return std::tuple(p.vertex, p.choice); };
  std::ranges::sort(own_, {}, order);
  std::int64_t lines = 0;
  for (const auto begin : beginnings_of_pieces()) {
    const auto end = std::min(begin + kPiece, of.size());
    const auto from = std::ranges::lower_bound(own_, begin, {}, &Prediction::vertex),
               to = std::ranges::lower_bound(own_, end, {}, &Prediction::vertex);
    std::vector<std::int64_t> counts(comm.size(), 0);
    counts[0] = to - from;
    auto piece = comm.all_to_all_v(std::span<const Prediction>(from, to), counts, kLabel).data;
    const auto ids =
        has_ids ? file.read_texts(Column::kIds, type, begin, root ? end : begin) : std::vector<std::string>();
    agree(comm, [&] {
      if (!root) return;
      std::ranges::sort(piece, {}, order);
      std::string written;
      for (const auto& p : piece)
        written += fmt::format("{},{},{:.9g}\n",
                               has_ids ? csv_field(ids[p.vertex - begin]) : std::to_string(p.vertex),
                               name_or_number(names, p.choice), p.probability);
      text->write(written);
      lines += std::ssize(piece);
    });
  }
  agree(comm, [&] {
    if (root) text->commit();
  });
  return lines;
}

}  // namespace espalier
