#include "evaluator.inl.hpp"

namespace espalier {

template class EvaluatorOn<Cuda>;

}  // namespace espalier
