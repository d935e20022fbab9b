// Is somebody watching? A progress line that rewrites itself is for a terminal only.
#pragma once

namespace espalier {

/// True when standard output ends in a terminal, also through mpirun (which gives rank 0 a
/// pseudo-terminal of its own even when its own output goes to a file).
bool output_is_watched();

}  // namespace espalier
