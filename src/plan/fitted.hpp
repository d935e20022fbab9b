// What the estimate of memory has from runs and not from sizes of arrays: factors and bytes that
// were fitted to counted peaks (VmHWM), each with the runs that gave it.
//
// kOutgrown       arrays of a step grow with the largest minibatch so far, an eighth at a time: the
//                 share that they outgrew and nothing uses again
// kHoles          holes between the arrays of evaluation, which come and go by the layer
// kReused         of what sampling freed, in pieces of all sizes, what the large arrays of
//                 evaluation find room in
//                 These three: the 72 peaks of `train` in docs/plan.md, Debian and R-MAT 16.
// kRuntimeBytes   what a running job touches of MPI, HDF5 and the C library beyond what the program
//                 holds at its start: a graph of a few vertices, one process, Open MPI 4.1
// kLaunchedBytes  what a rank has from its launcher and for its neighbours, and a process alone has
//                 not: the same by mpirun, 2 and 4 ranks
#pragma once

namespace espalier {

inline constexpr double kOutgrown = 0.35;
inline constexpr double kHoles = 1.08;
inline constexpr double kReused = 0.25;
inline constexpr double kRuntimeBytes = 11e6;
inline constexpr double kLaunchedBytes = 3 << 20;

}  // namespace espalier
