#include "espalier/history/history_audit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

constexpr int kAges = 63;   // of layer and floor(log2(age))
constexpr int kBins = 512;  // of floor(16 log2(error)), from 2^-16 to 2^16
constexpr double kBinsPerOctave = 16, kLeast = -16, kFixed = 1 << 24;

// Sums over rows of one layer and of similar ages.
struct Sums {
  std::int64_t rows = 0, errors = 0, cosines = 0;  // the last two times 2^24
  std::int64_t bins[kBins] = {};
};
constexpr std::int64_t kSums = sizeof(Sums) / sizeof(std::int64_t);

int bin_of(double error) {
  if (!(error > 0)) return 0;
  return static_cast<int>(
      std::clamp(std::floor((std::log2(error) - kLeast) * kBinsPerOctave), 0.0, kBins - 1.0));
}

// The middle of the bin where a share of the rows is passed.
double quantile(const Sums& sums, double share) {
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(sums.rows)));
  std::int64_t passed = 0;
  for (int bin = 0; bin < kBins; ++bin)
    if ((passed += sums.bins[bin]) >= wanted)
      return bin == 0 ? 0 : std::exp2((bin + 0.5) / kBinsPerOctave + kLeast);
  return 0;
}

// By layer and age.
class Table {
 public:
  explicit Table(const Communicator& world, std::span<const HeldRow> held) : world_(world) {
    std::int64_t last = 0;
    for (const auto& row : held) last = std::max<std::int64_t>(last, row.layer);
    layers_ = static_cast<int>(world.all_reduce(last, Reduction::kMax, "report")) + 1;
    sums_.resize(static_cast<std::size_t>(layers_ * kAges));
  }
  int layers() const { return layers_; }
  Sums& of(const HeldRow& row) {
    ESPALIER_CHECK(row.age > 0, "a row of age {}", row.age);
    return sums_[row.layer * kAges + std::bit_width(static_cast<std::uint64_t>(row.age)) - 1];
  }

  // Collective.
  std::vector<HeldHistory> total(bool errors) {
    if (errors) {
      world_.all_reduce(std::span(reinterpret_cast<std::int64_t*>(sums_.data()), sums_.size() * kSums),
                        Reduction::kSum, "report");
    } else {
      std::vector<std::int64_t> rows;
      for (const auto& sums : sums_) rows.push_back(sums.rows);
      world_.all_reduce(std::span(rows), Reduction::kSum, "report");
      for (std::size_t k = 0; k < rows.size(); ++k) sums_[k].rows = rows[k];
    }
    std::vector<HeldHistory> all;
    for (int layer = 0; layer < layers_; ++layer)
      for (int age = 0; age < kAges; ++age) {
        const auto& sums = sums_[layer * kAges + age];
        if (sums.rows == 0) continue;
        auto& line = all.emplace_back();
        line = {layer, std::int64_t{1} << age, (std::int64_t{1} << (age + 1)) - 1, sums.rows, {}};
        const auto mean = [&](std::int64_t sum) {
          return static_cast<double>(sum) / kFixed / static_cast<double>(sums.rows);
        };
        if (errors)
          line.error = {mean(sums.errors), quantile(sums, 0.5), quantile(sums, 0.9), mean(sums.cosines)};
      }
    return all;
  }

 private:
  const Communicator& world_;
  int layers_ = 0;
  std::vector<Sums> sums_;
};

void add_row(std::span<const float> kept, std::span<const float> exact, Sums& sums) {
  double apart = 0, of_kept = 0, of_exact = 0, product = 0;
  for (std::size_t j = 0; j < kept.size(); ++j) {
    const double r = kept[j], h = exact[j];
    apart += (r - h) * (r - h);
    of_kept += r * r;
    of_exact += h * h;
    product += r * h;
  }
  const double most = std::exp2(-kLeast);
  double error = apart == 0 ? 0 : of_exact == 0 ? 1 : std::sqrt(apart / of_exact);
  if (!(error < most)) error = most;
  double cosine = of_kept == 0 && of_exact == 0 ? 1 : product / std::sqrt(of_kept * of_exact);
  if (!(std::abs(cosine) <= 2)) cosine = 0;
  ++sums.rows;
  sums.errors += std::llrint(error * kFixed);
  sums.cosines += std::llrint(cosine * kFixed);
  ++sums.bins[bin_of(error)];
}

// Collective. Row k of the result is that of vertices[k]: of each rank those that it owns.
Matrix<float> rows_of(const Communicator& world, std::span<const std::int64_t> vertices,
                      const Ownership& owners, const Matrix<float>& mine, std::string_view label) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(world.size()), 0);
  for (const auto v : vertices) ++counts[owners.owner(v)];
  std::vector<std::int64_t> next(counts.size(), 0), place;
  for (std::size_t r = 1; r < counts.size(); ++r) next[r] = next[r - 1] + counts[r - 1];
  std::vector<std::int64_t> ids(vertices.size());
  for (const auto v : vertices) {
    place.push_back(next[owners.owner(v)]++);
    ids[place.back()] = v;
  }
  const auto asked = world.all_to_all_v(std::span<const std::int64_t>(ids), counts, label);
  const auto width = mine.columns;
  Matrix<float> reply(std::ssize(asked.data), width);
  for (std::int64_t k = 0; k < reply.rows; ++k)
    std::copy_n(mine.row(owners.local(asked.data[k])), width, reply.row(k));
  auto to = asked.counts, from = counts;
  for (auto* const of : {&to, &from})
    for (auto& count : *of) count *= width;
  Buffer<float> arrived;
  world.all_to_all_v(std::span<const float>(reply.data), to, from, arrived, label);
  Matrix<float> rows(std::ssize(vertices), width);
  for (std::int64_t k = 0; k < rows.rows; ++k)
    std::copy_n(arrived.data() + place[k] * width, width, rows.row(k));
  return rows;
}

}  // namespace

std::vector<HeldHistory> count_held(const Communicator& world, std::span<const HeldRow> held) {
  Table table(world, held);
  for (const auto& row : held) ++table.of(row).rows;
  return table.total(false);
}

std::vector<HeldHistory> audit_held(const Communicator& world, std::span<const HeldRow> held,
                                    ConstMatrixView<float> rows, const Ownership& exact_of,
                                    std::span<const Matrix<float>> exact, std::string_view label) {
  Table table(world, held);
  const auto width = static_cast<std::size_t>(rows.columns);
  for (int layer = 1; layer < table.layers(); ++layer) {
    std::vector<std::int64_t> vertices, numbers;
    for (std::size_t k = 0; k < held.size(); ++k)
      if (held[k].layer == layer) {
        vertices.push_back(held[k].vertex);
        numbers.push_back(static_cast<std::int64_t>(k));
      }
    const auto of_layer = rows_of(world, vertices, exact_of, exact[layer], label);
    for (std::size_t k = 0; k < numbers.size(); ++k)
      add_row({rows.row(numbers[k]), width}, {of_layer.row(static_cast<std::int64_t>(k)), width},
              table.of(held[numbers[k]]));
  }
  return table.total(true);
}

}  // namespace espalier
