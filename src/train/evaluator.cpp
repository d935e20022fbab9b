#include "evaluator.inl.hpp"

namespace espalier {

template class EvaluatorOn<Cpu>;

}  // namespace espalier
