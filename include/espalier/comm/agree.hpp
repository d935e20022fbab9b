// User errors that one rank meets (a bad line in its part of a file) become the error of all.
#pragma once

#include <functional>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective. Runs `work` on every rank; when any of them threw a UserError, every rank throws the
/// error of the lowest such rank, so that all leave together, with one message. Other exceptions
/// become a UserError with exit code 1. `work` may be collective if it fails on all or none.
void agree(const Communicator& comm, const std::function<void()>& work);

}  // namespace espalier
