#include "espalier/feature/row_form.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/comm/communicator.hpp"
#include "espalier/feature/quantised_rows.hpp"
#include "espalier/file/content_digest.hpp"

namespace espalier {

namespace {

// Numbers of T one behind the other, made by kRounded(float).
template <class T, auto kRounded>
struct Numbers final : RowKind {
  using RowKind::RowKind;

  std::int64_t row_bytes(std::int64_t width) const override { return width * std::int64_t{sizeof(T)}; }
  void read(const RowForm& form, const std::byte* row, float* to) const override {
    to_floats(reinterpret_cast<const T*>(row), to, form.width);
  }
  void write(const RowForm& form, const float* row, std::byte* to) const override {
    std::transform(row, row + form.width, reinterpret_cast<T*>(to), kRounded);
  }
};

using Floats = Numbers<float, [](float x) { return x; }>;
const Floats kFloat32({.name = "float32", .elements = RowElements::kFloat, .narrows = true});
// Index and number, alternately.
const Floats kPairs({.name = "pairs", .elements = RowElements::kFloat, .first = 1, .step = 2});
const Numbers<Half, to_half> kFloat16(
    {.asked = "16", .name = "float16", .words = "16 bits", .most = "65504", .elements = RowElements::kHalf});
const Numbers<BFloat16, to_bfloat16> kBfloat16({.asked = "bf16",
                                                .name = "bfloat16",
                                                .words = "bfloat16",
                                                .most = "3.3895314e+38",
                                                .elements = RowElements::kBFloat16});

// That no number has grown beyond the largest of a form.
class Overflow final : public RowLoss {
 public:
  explicit Overflow(RowForm form) : form_(std::move(form)), back_(static_cast<std::size_t>(form_.width)) {}

  void add(ConstMatrixView<float> rows, const std::byte* written) override {
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      form_.kind->read(form_, written + i * form_.row_bytes(), back_.data());
      for (std::int64_t j = 0; j < form_.width; ++j)
        if (!std::isfinite(back_[j])) largest_ = std::max(largest_, std::abs(rows(i, j)));
    }
  }
  void judge(const Grid& grid, const std::string& file, const std::string&) const override {
    agree(grid.world(), [&] {
      if (largest_ > 0)
        usage_error("graph.feature_bits = {}: {} has a feature of {}, and {} ends at {}; use 32 or 8",
                    form_.kind->asked, file, largest_, form_.kind->name, form_.kind->most);
    });
  }

 private:
  RowForm form_;
  std::vector<float> back_;
  float largest_ = 0;
};

}  // namespace

RowForm RowKind::measure(const RowsInParts&, std::int64_t width, const Communicator&) const {
  return {this, width};
}

std::unique_ptr<RowLoss> RowKind::loss(const RowForm& form) const {
  return std::make_unique<Overflow>(form);
}

const RowKind& row_kind_of(float) {
  return kFloat32;
}
const RowKind& row_kind_of(Half) {
  return kFloat16;
}
const RowKind& row_kind_of(BFloat16) {
  return kBfloat16;
}

const RowKind& kind_in_file(bool half, bool pairs) {
  return pairs ? static_cast<const RowKind&>(kPairs) : half ? row_kind_of(Half()) : kFloat32;
}

const RowKind* kind_asked(const NumberOrWord& bits) {
  const RowKind* const kinds[] = {&kFloat16,    &kBfloat16,   &codes_of(8),
                                  &codes_of(4), &codes_of(2), &codes_of(1)};
  const auto* const kind = std::ranges::find(kinds, bits.text, &RowKind::asked);
  return kind == std::end(kinds) ? nullptr : *kind;
}

// ---- rows in a form ----

void each_numbers(const StoredRows<Cpu>& rows, bool written, const std::function<void(Matrix<float>&)>& use) {
  constexpr std::int64_t kAtOnce = 256;
  Matrix<float> numbers;
  for (std::int64_t first = 0; first < rows.rows; first += numbers.rows) {
    numbers.resize(std::min(kAtOnce, rows.rows - first), rows.form.width);
    for (std::int64_t k = 0; k < numbers.rows; ++k)
      rows.form.kind->read(rows.form, rows.row(first + k), numbers.row(k));
    use(numbers);
    if (written) write_rows(rows.form, numbers, rows.row(first));
  }
}

void write_rows(const RowForm& form, ConstMatrixView<float> rows, std::byte* to, int threads) {
  ESPALIER_CHECK(rows.columns == form.width, "{} columns in rows of {}", rows.columns, form.width);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t k = 0; k < rows.rows; ++k) form.kind->write(form, rows.row(k), to + k * form.row_bytes());
}

std::uint64_t digest_rows(const RowForm& form, const std::byte* rows, std::int64_t count,
                          std::int64_t first) {
  const auto of = [&]<class Word>(Word) {
    const auto words = form.row_bytes() / std::int64_t{sizeof(Word)};
    return content_digest(std::span(reinterpret_cast<const Word*>(rows), count * words), first * words);
  };
  return form.row_bytes() % 4 == 0 ? of(std::uint32_t()) : of(std::uint16_t());
}

// One thread reads a row.
void gather_rows(const Cpu& cpu, const RowForm& form, const std::byte* from, const std::byte* own,
                 const std::int64_t* source, MatrixView<float> to) {
  ESPALIER_CHECK(to.columns == form.width, "{} columns of rows -> {}", form.width, to.columns);
  const auto bytes = form.row_bytes();
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k)
    form.kind->read(form, source[k] < 0 ? own + ~source[k] * bytes : from + source[k] * bytes, to.row(k));
}

}  // namespace espalier
