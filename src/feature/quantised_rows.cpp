#include "espalier/feature/quantised_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "espalier/base/log.hpp"

namespace espalier {

Quantisation measure_packing(const RowsInParts& pieces, std::int64_t columns, int bits,
                             const Communicator& comm) {
  constexpr auto kNone = std::numeric_limits<double>::infinity();
  std::vector<double> least(static_cast<std::size_t>(columns), kNone), most(least.size(), -kNone);
  pieces([&](const Matrix<float>& rows) {
    for (std::int64_t i = 0; i < rows.rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const double x = rows(i, j);
        least[j] = std::min(least[j], x);
        most[j] = std::max(most[j], x);
      }
  });
  comm.all_reduce(std::span<double>(least), Reduction::kMin, "setup");
  comm.all_reduce(std::span<double>(most), Reduction::kMax, "setup");
  Quantisation packing = {.columns = columns, .bits = bits, .least = {}, .step = {}};
  for (std::size_t j = 0; j < least.size(); ++j) {
    const bool some = least[j] <= most[j];
    packing.least.push_back(some ? least[j] : 0);
    packing.step.push_back(some ? (most[j] - least[j]) / ((1 << bits) - 1) : 0);
  }
  return packing;
}

namespace {

template <int kBits>
struct Codes final : RowKind {
  static constexpr char kText[] = {'0' + kBits, ' ', 'b', 'i', 't', 's'};
  static constexpr std::string_view kWords = {kText, sizeof kText};

  Codes() : RowKind({.asked = kWords.substr(0, 1), .name = kWords, .words = kWords, .of_columns = true}) {}
  std::int64_t row_bytes(std::int64_t width) const override { return (width * kBits + 15) / 16 * 2; }
  RowForm measure(const RowsInParts& pieces, std::int64_t width, const Communicator& comm) const override {
    return {this, width, std::make_shared<Quantisation>(measure_packing(pieces, width, kBits, comm))};
  }
  std::unique_ptr<RowLoss> loss(const RowForm& form) const override {
    return std::make_unique<CodeUse>(form);
  }
  void write(const RowForm& form, const float* row, std::byte* to) const override {
    std::fill_n(to, form.row_bytes(), std::byte());
    auto* const bytes = reinterpret_cast<std::uint8_t*>(to);
    for (std::int64_t j = 0; j < form.width; ++j) {
      const double apart = form.codes->step[j];
      const auto code = apart > 0 ? std::nearbyint((row[j] - form.codes->least[j]) / apart) : 0;
      const auto bit = j * kBits;
      bytes[bit / 8] |= static_cast<std::uint8_t>(static_cast<std::uint32_t>(code) << (bit % 8));
    }
  }
  // Byte by byte.
  void read(const RowForm& form, const std::byte* row, float* to) const override {
    constexpr int kOfByte = 8 / kBits;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(row);
    const double* const least = form.codes->least.data();
    const double* const apart = form.codes->step.data();
    const auto whole = form.width / kOfByte * kOfByte;
    for (std::int64_t j = 0; j < whole; j += kOfByte) {
      const std::uint32_t byte = bytes[j / kOfByte];
      for (int k = 0; k < kOfByte; ++k)
        to[j + k] = quantised_number(byte >> (k * kBits) & ((1u << kBits) - 1), least[j + k], apart[j + k]);
    }
    for (auto j = whole; j < form.width; ++j)
      to[j] = quantised_number(quantised_code(bytes, j, kBits), least[j], apart[j]);
  }
};

const Codes<8> kEight;
const Codes<4> kFour;
const Codes<2> kTwo;
const Codes<1> kOne;

}  // namespace

const RowKind& codes_of(int bits) {
  const RowKind* const kinds[] = {&kOne, &kTwo, &kFour, &kEight};
  return *kinds[std::countr_zero(static_cast<unsigned>(bits))];
}

// ---- what codes leave of columns ----

CodeUse::CodeUse(const RowForm& form)
    : form_(form),
      columns_(form.width),
      bits_(form.codes->bits),
      seen_(static_cast<std::size_t>(columns_ << bits_), 0),
      numbers_(static_cast<std::size_t>(columns_)) {}

void CodeUse::add(ConstMatrixView<float> rows, const std::byte* written) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(written + i * form_.row_bytes());
    for (std::int64_t j = 0; j < columns_; ++j) {
      seen_[(j << bits_) + quantised_code(bytes, j, bits_)] = 1;
      auto& numbers = numbers_[j];
      if (std::ssize(numbers) > kMostNumbers) continue;
      const auto at = std::ranges::lower_bound(numbers, rows.row(i)[j]);
      if (at == numbers.end() || *at != rows.row(i)[j]) numbers.insert(at, rows.row(i)[j]);
    }
  }
}

std::vector<PoorColumn> CodeUse::poor_columns(const Communicator& comm) const {
  constexpr std::int64_t kFewOf = 8, kAtOnce = 16;
  if (bits_ == 1) return {};
  auto seen = seen_;
  comm.all_reduce(std::span(seen), Reduction::kMax, "setup");
  std::vector<PoorColumn> few, poor;
  for (std::int64_t j = 0; j < columns_; ++j) {
    const auto codes = std::accumulate(&seen[j << bits_], &seen[(j + 1) << bits_], std::int64_t{0});
    if (codes > 1 && codes <= std::max<std::int64_t>(2, (1 << bits_) / kFewOf)) few.push_back({j, codes, 0});
  }
  // Their numbers of all ranks, of some columns at a time.
  for (auto begin = few.begin(); begin != few.end();) {
    const auto end = begin + std::min<std::int64_t>(kAtOnce, few.end() - begin);
    Buffer<std::int64_t> sizes;
    Buffer<float> mine;
    for (auto of = begin; of != end; ++of) {
      const auto& numbers = numbers_[of->column];
      sizes.push_back(std::ssize(numbers));
      mine.insert(mine.end(), numbers.begin(), numbers.end());
    }
    const auto all_sizes = comm.all_gather_v(std::span<const std::int64_t>(sizes), "setup");
    const auto all = comm.all_gather_v(std::span<const float>(mine), "setup");
    std::vector<std::vector<float>> numbers(static_cast<std::size_t>(end - begin));
    auto from = all.begin();
    for (std::size_t k = 0; k < all_sizes.size(); from += all_sizes[k++])
      numbers[k % numbers.size()].insert(numbers[k % numbers.size()].end(), from, from + all_sizes[k]);
    for (auto& of : numbers) {
      std::ranges::sort(of);
      of.erase(std::ranges::unique(of).begin(), of.end());
      begin->numbers = std::min(std::ssize(of), kMostNumbers + 1);
      if (begin->numbers >= kFewOf * begin->codes) poor.push_back(*begin);
      ++begin;
    }
  }
  return poor;
}

void CodeUse::judge(const Grid& grid, const std::string&, const std::string& type) const {
  constexpr std::size_t kNamed = 5;
  const auto poor = poor_columns(grid.column_comm());
  if (poor.empty() || grid.world().rank() != 0) return;
  std::string named;
  for (std::size_t k = 0; k < std::min(poor.size(), kNamed); ++k) {
    const bool many = poor[k].numbers > kMostNumbers;
    named += fmt::format("{}column {} keeps {} of {}{}", k == 0 ? "" : ", ", poor[k].column, poor[k].codes,
                         many ? "more than " : "", many ? kMostNumbers : poor[k].numbers);
  }
  log::warning(
      "graph.feature_bits = {}: {} of {} columns of features{} keep few of their numbers, because some "
      "number is "
      "far from the others: {}{}; clip such numbers, or use more bits",
      bits_, poor.size(), columns_, type, named, poor.size() > kNamed ? ", ..." : "");
}

}  // namespace espalier
