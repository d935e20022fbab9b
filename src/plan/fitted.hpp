// What the estimate of memory has from runs and not from sizes of arrays: factors and bytes that
// were fitted to counted peaks (VmHWM), each with the runs that gave it.
//
// constant         what it stands for                                     fitted to
// kOutgrown        arrays of a step grow with the largest minibatch so    the 72 peaks of training
//                  far, an eighth at a time: this share of them was       in docs/plan.md: Debian and
//                  outgrown and is not reused                             R-MAT 16, p = 1, 2, 4
// kHoles           holes between the arrays of evaluation, which come     the same
//                  and go by the layer
// kReused          of what sampling freed, in pieces of all sizes, the    the same
//                  large arrays of evaluation find this share to live in
// kRuntimeBytes    what a running job touches of MPI, HDF5 and the C      sampling of a graph of no
//                  library beyond what the program holds at its start     weight, one rank, Open MPI 4.1
// kLaunchedBytes   what a rank has from its launcher and for its          the same by mpirun -np 2
//                  neighbours, and a process alone has not
#pragma once

namespace espalier {

inline constexpr double kOutgrown = 0.35;
inline constexpr double kHoles = 1.08;
inline constexpr double kReused = 0.25;
inline constexpr double kRuntimeBytes = 11e6;
inline constexpr double kLaunchedBytes = 3 << 20;

}  // namespace espalier
