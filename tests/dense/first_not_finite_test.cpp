// Law: that of first_not_finite_cases.hpp, with any number of threads.
#include "dense/first_not_finite_cases.hpp"

namespace espalier {
namespace {

TEST(FirstNotFinite, IsFoundWhereverItStands) {
  for (const int threads : {1, 3})
    check_first_not_finite([&](const Buffer<float>& values) {
      return first_not_finite(Cpu{threads}, values.data(), std::ssize(values));
    });
}

}  // namespace
}  // namespace espalier
