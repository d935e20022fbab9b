// One cache of history for the grid, on the CPU.
#include "grid_history.inl.hpp"

namespace espalier {

template class GridHistoryOn<Cpu>;

}  // namespace espalier
