// Law: no large array of a step is written by one thread before all write it. Sizing touches no
// page, and each of two threads touches its share first, so that on a machine with several NUMA
// nodes a page lies near the thread that will work on it (docs/cores.md). Counted as page faults.
// Products deal blocks of rows to whichever thread is free, so of theirs nothing can be counted.
#include <gtest/gtest.h>
#include <malloc.h>
#include <omp.h>
#include <sys/resource.h>

#include <cstdlib>
#include <functional>
#include <numeric>

#include "espalier/base/arrays.hpp"
#include "espalier/dense/gather.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/train/optimizer.hpp"

namespace espalier {
namespace {

constexpr int kTeam = 2;
// 64 MiB a matrix: what is freed goes back to the system, so that pages are new.
constexpr std::int64_t kTouchedRows = 1 << 17, kTouchedColumns = 128;

// How many pages each thread of a team was the first to touch.
std::vector<std::int64_t> faults_of_team(const std::function<void()>& work) {
  std::vector<std::int64_t> faults(kTeam);
  const auto add = [&](int sign) {
#pragma omp parallel num_threads(kTeam)
    {
      rusage used = {};
      getrusage(RUSAGE_THREAD, &used);
      faults[static_cast<std::size_t>(omp_get_thread_num())] += sign * used.ru_minflt;
    }
  };
  add(-1);
  work();
  add(1);
  return faults;
}

void expect_shared(const char* what, const std::function<void()>& work) {
  const auto faults = faults_of_team(work);
  const auto all = std::accumulate(faults.begin(), faults.end(), std::int64_t{0});
  EXPECT_GE(all, 24) << what << ": of 32 huge pages, or 16384 small ones";
  for (const auto of_thread : faults)
    EXPECT_GE(4 * of_thread, all) << what << ": " << faults[0] << " pages by one thread, " << faults[1]
                                  << " by the other";
}

// MALLOC_PERTURB_, with which tests/run.py starts tests, has the C library fill what it gives.
class UnfilledMemory {
 public:
  UnfilledMemory() { fill_with(0); }
  ~UnfilledMemory() {
    if (const char* with = std::getenv("MALLOC_PERTURB_")) fill_with(std::atoi(with));
  }

 private:
  static void fill_with([[maybe_unused]] int byte) {
#ifdef __GLIBC__
    mallopt(M_PERTURB, byte);
#endif
  }
};

bool allocator_is_watched() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

TEST(FirstTouch, IsByTheThreadsThatWork) {
  if (allocator_is_watched()) GTEST_SKIP() << "the sanitizer's allocator touches pages by itself";
  const UnfilledMemory unfilled;
  const Cpu cpu{kTeam};
  const auto n = kTouchedRows, f = kTouchedColumns;
  Matrix<float> x;
  const auto sizing = faults_of_team([&] { x.resize(n, f); });
  EXPECT_LT(sizing[0] + sizing[1], 8) << "sizing an array touches it";
  expect_shared("zeros", [&] { fill_zero(cpu, x.data); });

  Matrix<float> y;
  expect_shared("dropout", [&] { dropout<float>(cpu, {}, 0.5, x, y); });

  Buffer<std::int64_t> source(static_cast<std::size_t>(n));
  std::iota(source.begin(), source.end(), std::int64_t{0});
  y = {};
  y.resize(n, f);
  expect_shared("rows that were fetched", [&] { gather_rows<float>(cpu, x, x, source.data(), y); });
  y = {};
  y.resize(n, f);
  expect_shared("rows that are sent", [&] { copy_rows<float>(cpu, x, source.data(), 0, y); });

  std::vector<Parameter<float>> parameters;
  parameters.push_back({"weights", 1, true, std::move(x)});
  expect_shared("state of the optimiser", [&] { Optimizer<float>(cpu, {}, parameters); });
}

}  // namespace
}  // namespace espalier
