// Marks the inline functions that the CPU and the GPU share: the arithmetic of one row or one
// element lives in headers that a plain C++ compiler reads too, so the CPU tests check what the
// GPU will run.
#pragma once

#if defined(__CUDACC__)
#define ESPALIER_HD __host__ __device__
#else
#define ESPALIER_HD
#endif
