// The lines of volume_bench: what a configuration moved, counted and predicted, as a table
// and as CSV.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "product/mpi_bytes.hpp"
#include "rates.hpp"

namespace espalier::bench {

inline constexpr const char* kSteps[] = {"",           "/ids",   "/rows",
                                         "/reduction", "/picks", "/draws"};  // first: their sum

// Sums over ranks, but for `most`.
struct Step {
  double messages = 0, bytes = 0, predicted = 0, most = 0;
};

struct Line {
  int c = 1;
  std::string schedule, sampler, label;  // label: before the steps
  std::vector<Step> steps = {};          // of kSteps, or only the first
  double seconds = 0;
  std::int64_t wrong = 0;
};

inline std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  return text;
}

inline std::string ratio_text(const Step& step) {
  return step.predicted > 0 ? fmt::format("{:.4f}", step.bytes / step.predicted) : "";
}

class Output {
 public:
  Output(std::string graph_name, const std::string& csv, int ranks, bool speaks)
      : graph_name_(std::move(graph_name)), ranks_(ranks), speaks_(speaks) {
    if (!speaks || csv.empty()) return;
    const bool fresh = !std::filesystem::exists(csv) || std::filesystem::file_size(csv) == 0;
    csv_.open(csv, std::ios::app);
    if (fresh)
      csv_ << "graph,p,c,schedule,sampler,label,messages,bytes_total,bytes_mean_per_rank,bytes_max_rank,"
              "predicted_bytes_total,ratio,seconds\n";
  }
  void title(const std::string& text) const {
    if (speaks_)
      fmt::print("\n# {}\n{:<11}{:>2} {:<17}{:>12}{:>12}{:>12}{:>9}{:>11}{:>10}{:>8}\n", text, "", "c", "",
                 "MB/rank", "max rank", "predicted", "ratio", "messages", "seconds", "#wrong");
  }
  void add(const Line& line) {
    wrong_ += line.wrong;
    if (!speaks_) return;
    const auto& sum = line.steps.front();
    const auto megabytes = [](double bytes) { return fmt::format("{:.3f}", 1e-6 * bytes); };
    const bool modelled = sum.predicted > 0 || sum.bytes == 0;
    fmt::print("{:<11}{:>2} {:<17}{:>12}{:>12}{:>12}{:>9}{:>11.0f}{:>10.4f}{:>8}\n", line.sampler, line.c,
               line.schedule, megabytes(sum.bytes / ranks_), megabytes(sum.most),
               modelled ? megabytes(sum.predicted / ranks_) : "", ratio_text(sum), sum.messages, line.seconds,
               line.wrong);
    std::fflush(stdout);
    for (std::size_t k = 0; csv_.is_open() && k < line.steps.size(); ++k) {
      const auto& step = line.steps[k];
      csv_ << fmt::format("{},{},{},{},{},{}{},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{},{:.6f}\n", graph_name_,
                          ranks_, line.c, line.schedule, line.sampler, line.label, kSteps[k], step.messages,
                          step.bytes, step.bytes / ranks_, step.most, step.predicted, ratio_text(step),
                          line.seconds);
    }
    csv_.flush();
  }
  std::int64_t wrong() const { return wrong_; }

 private:
  std::string graph_name_;
  int ranks_;
  bool speaks_;
  std::ofstream csv_;
  std::int64_t wrong_ = 0;
};

inline std::vector<Step> steps_of(const Communicator& world, const std::string& label) {
  constexpr std::size_t count = std::size(kSteps);
  std::vector<double> sums, most;
  for (const auto* step : kSteps) {
    const auto volume = *step == '\0' ? world.traffic().of_stage(label) : world.traffic().of(label + step);
    sums.insert(sums.end(), {static_cast<double>(volume.messages), static_cast<double>(volume.bytes_received),
                             volume.predicted_bytes});
    most.push_back(static_cast<double>(volume.bytes_received));
  }
  world.all_reduce(std::span<double>(sums), Reduction::kSum, "bench");
  world.all_reduce(std::span<double>(most), Reduction::kMax, "bench");
  std::vector<Step> steps(count);
  for (std::size_t k = 0; k < count; ++k) steps[k] = {sums[3 * k], sums[3 * k + 1], sums[3 * k + 2], most[k]};
  return steps;
}

/// Runs `work` with empty ledgers and fills in steps and seconds; bytes that the wrappers see and
/// the ledger does not, or the other way round, are wrong.
template <class Work>
void count_bytes(const Communicator& world, Line& line, const Work& work) {
  world.barrier();
  world.traffic().clear();
  const auto before = mpi_bytes_received;
  const double seconds = seconds_of(work);
  std::int64_t wrong = mpi_bytes_received - before;
  for (const auto& [label, volume] : world.traffic().all()) wrong -= volume.bytes_received;
  line.steps = steps_of(world, line.label);
  line.wrong += world.all_reduce(std::abs(wrong), Reduction::kSum, "bench");
  line.seconds = world.all_reduce(seconds, Reduction::kMax, "bench");
}

/// More runs for a median.
template <class Work>
void time_again(const Communicator& world, Line& line, int repeats, const Work& work) {
  std::vector<double> seconds = {line.seconds};
  for (int k = 1; k < repeats; ++k) {
    world.barrier();
    seconds.push_back(world.all_reduce(seconds_of(work), Reduction::kMax, "bench"));
  }
  line.seconds = median(seconds);
}

}  // namespace espalier::bench
