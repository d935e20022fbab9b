#include "evaluator.inl.hpp"

namespace espalier {

template class JudgeOn<Cpu>;
template class EvaluatorOn<Cpu>;

}  // namespace espalier
