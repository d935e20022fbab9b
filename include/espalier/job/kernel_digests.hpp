// What samples and losses are made of and no graph is needed for, computed here and digested: each
// has one result for all machines, ranks, threads, instruction sets and compilers (design, 4.1 and
// 4.2). `espalier verify` knows them.
#pragma once

#include <string>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Exponentials, logarithms, roots, powers and cosines of base/elementary.hpp.
std::string digest_of_functions();
/// The counter-based words that all draws are made of.
std::string digest_of_random_numbers();
/// Every float16 as float32, and numbers of many magnitudes as float16.
std::string digest_of_halves();
/// By so many threads.
std::string digest_of_dense_products(int threads);

/// Collective. 1 + .. + 1000, and a number that goes away again, dealt to the ranks: 500500.
double exact_sum(const Communicator& world);
/// Collective. The gradients of seven minibatches, dealt to the ranks, in fixed point.
std::string digest_of_gradient_sum(const Communicator& world);
/// Five steps of "adam" or "sgd".
std::string digest_of_optimizer(const char* kind);

}  // namespace espalier
