// What the estimate of memory has from runs and not from sizes of arrays: factors and bytes that
// were fitted by hand to counted peaks (VmHWM). Of the fits no log was kept; what the estimate is
// off with these numbers is the table of docs/plan.md (Debian and R-MAT 16, p = 1, 2, 4).
//
// kOutgrown       arrays of a step grow with the largest minibatch so far, an eighth at a time: the
//                 share that they outgrew and nothing uses again
// kHoles          holes between the arrays of evaluation, which come and go by the layer
// kReused         of what sampling freed, in pieces of all sizes, what the large arrays of
//                 evaluation find room in
// kRuntimeBytes   what a running job touches of MPI, HDF5 and the C library beyond what the program
//                 holds at its start
// kLaunchedBytes  what a rank has from its launcher and for its neighbours, and a process alone has
//                 not
#pragma once

namespace espalier {

inline constexpr double kOutgrown = 0.35;
inline constexpr double kHoles = 1.08;
inline constexpr double kReused = 0.25;
inline constexpr double kRuntimeBytes = 11e6;
inline constexpr double kLaunchedBytes = 3 << 20;

}  // namespace espalier
