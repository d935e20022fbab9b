// What the benches share: rates of the machine that bounds are made of, and the table that compares
// with them.
//
// A bench verifies its results, then hands a list of Comparisons to compare(). Google Benchmark
// repeats each of them; the bound is measured right after the operation, every time, so that both
// see the same machine, noise included. The table shows medians over all repetitions:
//
//     case      rate      bound     unit     ratio = rate / bound (lowest and highest)      #wrong
//
// Flags are Google Benchmark's (--benchmark_filter=..., --benchmark_out=FILE.json for everything
// measured, with the threads of every case and the load of the machine after it as counters;
// scripts/compare_bench.py reads that).
#pragma once

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/philox.hpp"

namespace espalier::bench {

template <class Work>
double seconds_of(const Work& work) {
  const double start = now();
  work();
  return now() - start;
}

inline double median(std::vector<double> values) {
  const auto half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half))) /
         2;
}

/// The thread counts of a table: 1, and 2 where the machine has them.
inline std::vector<int> thread_counts() {
  return std::thread::hardware_concurrency() > 1 ? std::vector<int>{1, 2} : std::vector<int>{1};
}

/// Processes that run or wait to run, mean of the last minute; ours included, so more than the
/// threads of a case means that others were measured too.
inline double load_average() {
  double load = 0;
  return getloadavg(&load, 1) < 1 ? 0 : load;
}

/// Copies an array that is larger than the caches; GB/s, bytes read + bytes written. (memcpy of
/// this size writes past the caches, so nothing else moves.)
inline double copy_rate(int threads) {
  constexpr std::size_t kBytes = std::size_t{1} << 28;
  static const Buffer<std::byte> from(kBytes, std::byte{1});
  static Buffer<std::byte> to(kBytes, std::byte{0});
  const auto piece = kBytes / static_cast<std::size_t>(threads);
  const double seconds = seconds_of([&] {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; ++t) {
      const auto begin = static_cast<std::size_t>(t) * piece;
      std::memcpy(to.data() + begin, from.data() + begin, piece);
    }
  });
  return 2e-9 * static_cast<double>(piece * static_cast<std::size_t>(threads)) / seconds;
}

/// Adds up entries at random places of a table of 4-byte numbers; 1e9 gathers/s. The places depend
/// on nothing loaded, so the processor overlaps as many of them as it can.
inline double gather_rate(int threads, const Buffer<std::int32_t>& table) {
  constexpr std::int64_t kGathers = 1 << 23;
  std::uint64_t sum = 0;
  const double seconds = seconds_of([&] {
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
    for (std::int64_t i = 0; i < kGathers; ++i) {
      auto place = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u;
      place = (place ^ (place >> 32)) * 0xbf58476d1ce4e5b9u;
      sum += static_cast<std::uint32_t>(table[mulhi(place, table.size())]);
    }
  });
  benchmark::DoNotOptimize(sum);
  return 1e-9 * static_cast<double>(kGathers) / seconds;
}

/// Adds a number to 64-bit sums at random places of 32 KiB, which the first cache holds; 1e9
/// additions/s. Places are read in order.
inline double add_rate(int threads) {
  constexpr std::int64_t kSums = 4096, kPlaces = 1 << 16, kAdditions = 1 << 23;
  static const Buffer<std::int32_t> places = [] {
    Buffer<std::int32_t> numbers(kPlaces);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<std::int32_t>(mulhi(i * 0x9e3779b97f4a7c15u, kSums));
    return numbers;
  }();
  const double seconds = seconds_of([&] {
#pragma omp parallel num_threads(threads)
    {
      std::vector<std::uint64_t> sums(kSums, 0);
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < kAdditions; ++i)
        sums[static_cast<std::size_t>(places[static_cast<std::size_t>(i % kPlaces)])] += 7;
      benchmark::DoNotOptimize(sums.data());
    }
  });
  return 1e-9 * static_cast<double>(kAdditions) / seconds;
}

/// One line of a table.
struct Comparison {
  std::string name;
  double amount;                      ///< what one call of the operation does, in 1e9 flop,
                                      ///< bytes, edges
  std::function<double()> operation;  ///< does it once and returns its seconds (over ranks:
                                      ///< the largest)
  std::function<double()> bound;      ///< measures the bound once: 1e9 of the same per second
  std::int64_t wrong = 0;             ///< elements of the result that failed verification
  int threads = 1;                    ///< of the operation and of the bound, over all ranks
  std::string unit = {};              ///< of both rates, where it is not that of the table
};

/// Collects every repetition and prints the table at the end.
class Table final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;  // medians are taken here
      const auto& name = run.run_name.function_name;
      if (lines_.empty() || lines_.back().name != name)
        lines_.push_back({name, run.report_label, {}, {}, {}, 0});
      auto& line = lines_.back();
      line.rate.push_back(run.counters.at("rate"));
      line.bound.push_back(run.counters.at("bound"));
      line.ratio.push_back(run.counters.at("ratio"));
      line.wrong = run.counters.at("wrong");
    }
  }
  void print(const std::string& title) const {
    fmt::print("\n# {}\n# load {:.1f} on {} cores\n", title, load_average(),
               std::thread::hardware_concurrency());
    fmt::print("{:<38}{:>10}{:>10} {:<9}{:>7}{:>16}{:>8}\n", "", "rate", "bound", "", "ratio", "(low..high)",
               "#wrong");
    for (const auto& line : lines_) {
      const auto [low, high] = std::minmax_element(line.ratio.begin(), line.ratio.end());
      fmt::print("{:<38}{:>10.4g}{:>10.4g} {:<9}{:>7.2f}{:>16}{:>8.0f}\n", line.name, median(line.rate),
                 median(line.bound), line.unit, median(line.ratio),
                 fmt::format("({:.2f}..{:.2f})", *low, *high), line.wrong);
    }
    std::fflush(stdout);
  }

 private:
  struct Line {
    std::string name, unit;
    std::vector<double> rate, bound, ratio;
    double wrong;
  };
  std::vector<Line> lines_;
};

inline void measure(benchmark::State& state, const Comparison& comparison) {
  std::vector<double> seconds, bounds;
  for ([[maybe_unused]] auto _ : state) {
    seconds.push_back(comparison.operation());
    bounds.push_back(comparison.bound());
    state.SetIterationTime(seconds.back());
  }
  const double rate = comparison.amount / median(seconds), bound = median(bounds);
  state.counters["rate"] = rate;
  state.counters["bound"] = bound;
  state.counters["ratio"] = rate / bound;
  state.counters["wrong"] = static_cast<double>(comparison.wrong);
  state.counters["threads"] = comparison.threads;
  state.counters["load"] = load_average();
  state.SetLabel(comparison.unit);
}

/// Measures all comparisons, in `unit` where they have none, and prints the table; returns the exit
/// code of the bench: 1 if anything was wrong. Collective where operations are: every rank runs
/// them equally often, and only `speaks` prints.
inline int compare(int argc, char** argv, const std::string& title, const std::string& unit,
                   std::vector<Comparison> comparisons, bool speaks = true) {
  constexpr int kIterations = 2;
  // The default: what the user gives comes later.
  static char repetitions[] = "--benchmark_repetitions=5";
  std::vector<char*> arguments = {argv[0], repetitions};
  for (int i = 1; i < argc; ++i)
    if (speaks || std::strncmp(argv[i], "--benchmark_out", 15) != 0) arguments.push_back(argv[i]);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  std::int64_t wrong = 0;
  for (auto& comparison : comparisons) {
    wrong += comparison.wrong;
    if (comparison.unit.empty()) comparison.unit = unit;
    benchmark::RegisterBenchmark(comparison.name.c_str(), measure, comparison)
        ->Iterations(kIterations)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  Table table;
  benchmark::RunSpecifiedBenchmarks(&table);
  if (speaks) table.print(title);
  return wrong > 0 ? 1 : 0;
}

}  // namespace espalier::bench
