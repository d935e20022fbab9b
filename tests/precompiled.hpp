// What most tests include, compiled once per build and put before each test: half of what compiling
// a short test takes. A test still includes what it uses: nvcc reads its files without this one.
// It is compiled by itself, so it has no #pragma once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "mpi_test.hpp"
