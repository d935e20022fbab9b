#include "grid_history.inl.hpp"
#include "training_history.inl.hpp"
#include "training_history_state.inl.hpp"

namespace espalier {

template class GridHistoryOn<Cuda>;
template class TrainingHistoryOn<Cuda>;

}  // namespace espalier
