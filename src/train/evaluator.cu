#include "evaluator.inl.hpp"

namespace espalier {

template class JudgeOn<Cuda>;
template class EvaluatorOn<Cuda>;

}  // namespace espalier
