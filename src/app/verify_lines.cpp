// Lines go from the base upwards, so that the first that differs names the fault.
//
// The table of expected values, verify_values.inl.hpp, is written by `make verify-values`. Values
// do not depend on ranks, grid, schedule, threads, instruction set, compiler or MPI library.
// Printing them anew is right where a change was meant to change results (another random number,
// another order of a sum, another layer), which CHANGELOG.md then says; never because a machine
// disagrees: that is what the command is for.
#include "verify_runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "espalier/base/log.hpp"

namespace espalier {

namespace {

constexpr std::pair<const char*, const char*> kValues[] = {
#include "verify_values.inl.hpp"
};

// What a difference means where nothing below it differs, group by group.
constexpr std::pair<const char*, const char*> kMeanings[] = {
    {"functions",
     "the compiler has changed products and sums of plain code: exponentials and logarithms are made of "
     "them"},
    {"numbers", "the compiler has made other integers or bits of plain code: try it at -O1, or another one"},
    {"products", "dense products are added in another order, or rounded otherwise, by this build"},
    {"reduction", "what the MPI library adds up over the ranks is not their sum"},
    {"optimizer", "the optimiser takes another step from the same gradients"},
    {"graph", "the graph that is made here is another one: see the lines that say how it is read or made"},
    {"draws",
     "other minibatches: where some ways to sample agree, what the others send between ranks (the MPI "
     "library, the GPUs' exchange); where none does, the draw itself"},
    {"forward", "the forward pass of this layer, or the rows that it is given"},
    {"training", "the backward pass of this layer, or the optimiser: the forward pass agrees"},
    {"with", "what is named, around layers that agree"},
    {"restart", "a training that goes on is not the one that was stopped: its state is not whole"},
};

const char* find(std::span<const std::pair<const char*, const char*>> table, const std::string& key) {
  for (const auto& [name, text] : table)
    if (key == name) return text;
  return nullptr;
}

// On GPUs the dense products of training are cuBLAS's, whose sums have another order (docs/gpu.md):
// 1e-7 of a product. Adam divides by the root of the squares and so carries it whole into the
// weights. By the emulation's products, whose order is another too, losses differ by 2e-7.
constexpr double kTolerance = 1e-4;

// The losses that a text begins with; its digests, of weights, are left out.
std::vector<double> losses_of(const std::string& text) {
  std::vector<double> losses;
  std::istringstream words(text);
  for (std::string word; words >> word && word.find('.') != std::string::npos;)
    losses.push_back(std::strtod(word.c_str(), nullptr));
  return losses;
}

bool are_near(const std::string& found, const std::string& expected) {
  const auto a = losses_of(found), b = losses_of(expected);
  return !a.empty() && std::ranges::equal(a, b, [](double x, double y) {
    return std::fabs(x - y) <= kTolerance * std::fabs(y);
  });
}

}  // namespace

void VerifyLines::check(const std::string& group, const std::string& name, const std::string& found,
                        const std::string& key, const std::string& where) {
  const auto whole_key = key.empty() ? group + " " + name : key;
  if (prints_values_) {
    const auto known = std::ranges::find(values_, whole_key, &std::pair<std::string, std::string>::first);
    if (known == values_.end())
      values_.emplace_back(whole_key, found);
    else
      judge(group, name, found, known->second, "two ways that must agree do not", where);
    return;
  }
  const auto* const expected = find(kValues, whole_key);
  const auto* const meaning = find(kMeanings, group);
  judge(group, name, found, expected ? expected : "nothing: verify_values.inl.hpp has no such line",
        meaning ? meaning : "", where);
}

void VerifyLines::check_rule(const std::string& group, const std::string& name, const std::string& found,
                             const std::string& expected, const std::string& cause) {
  judge(group, name, found, expected, cause, "");
}

void VerifyLines::judge(const std::string& group, const std::string& name, const std::string& found,
                        const std::string& expected, const std::string& cause, const std::string& where) {
  const bool has_losses = group == "forward" || group == "training" || group == "with" || group == "restart";
  const bool same = found == expected, near = on_gpu_ && has_losses && are_near(found, expected);
  const auto differ = world_.all_gather(static_cast<int>(!same && !near), "verify");
  const auto odd = std::ranges::count(differ, 1);
  const auto rank = odd == 0 ? 0 : std::ranges::find(differ, 1) - differ.begin();
  const auto shown = world_.broadcast_text(found, static_cast<int>(rank), "verify");
  const char* const verdict = odd > 0 ? "DIFFERS" : same ? "same" : "near";
  auto words = shown;
  if (odd > 0) words += fmt::format("; expected {}", expected);
  if (odd > 0 && !where.empty()) words += fmt::format(" ({})", where);
  if (odd > 0 && odd < world_.size())
    words += fmt::format(" (on {} of {} ranks, first rank {})", odd, world_.size(), rank);
  ++lines_;
  if (odd > 0 && differing_++ == 0) {
    first_ = group + " " + name;
    meaning_ = cause;
  }
  if (!prints_values_ || odd > 0) log::info("{:<11}{:<41}{:<9}{}", group, name, verdict, words);
}

void VerifyLines::finish() const {
  if (differing_ > 0)
    throw UserError(ExitCode::kInternal,
                    fmt::format("{} of {} lines differ; the first, {}, most likely means: {}", differing_,
                                lines_, first_, meaning_));
  if (!prints_values_) return log::info("{} lines, all as expected", lines_);
  std::string table = "// make verify-values; verify_lines.cpp says when.\n/* clang-format off */\n";
  for (const auto& [key, value] : values_) table += fmt::format("{{\"{}\", \"{}\"}},\n", key, value);
  if (world_.rank() == 0) log::print(table);
}

}  // namespace espalier
