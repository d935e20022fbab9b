// One cache of history for the grid, on GPUs.
#include "grid_history.inl.hpp"

namespace espalier {

template class GridHistoryOn<Cuda>;

}  // namespace espalier
