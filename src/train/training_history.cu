#include "control_variates.inl.hpp"
#include "training_history.inl.hpp"

namespace espalier {

template class TrainingHistoryOn<Cuda>;

}  // namespace espalier
