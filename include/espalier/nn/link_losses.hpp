// Losses of links: of each example the score of a link that is there, and those of k links that
// are made up (*negatives*, of which it is to stand out).
//
// What a loss is stands in a table of kinds (src/nn/link_loss_rules.hpp), each with its rules. An
// example's loss is that of its positive and the mean of those of its negatives, or a weighted mean
// of them, so that k does not change its size.
//
// Law: sums have one shape, for any number of threads, and GPUs give the CPU's bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "espalier/base/execution.hpp"

namespace espalier {

/// What the rest of the program must know of a loss.
struct LinkLossKind {
  const char* name;
  bool has_margin, has_temperature;  ///< which of LinkLoss's numbers does it take?
  const char* about;
};

std::span<const LinkLossKind> link_loss_kinds();
/// Throws UserError(kUsage), which names `what` ("train.loss ="), where there is none.
const LinkLossKind& link_loss_kind_of(const std::string& name, const std::string& what);

struct LinkLoss {
  const LinkLossKind* kind;
  double margin = 1;
  double temperature = 1;
};

/// The SUM of the losses of `count` examples, in double: chunks of kSummedRows examples in their
/// order, then the chunks in theirs. positive [count], negative [count, negatives]; their gradients
/// become scale * gradient.
double link_losses(const Cpu&, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                   const float* positive, const float* negative, double scale, float* dpositive,
                   float* dnegative);

/// The same on a GPU, which the host does not wait for: all arrays, and `sum` [1], which becomes
/// the sum, are device memory.
void link_losses(const Cuda&, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                 const float* positive, const float* negative, double scale, float* dpositive,
                 float* dnegative, double* sum);

}  // namespace espalier
