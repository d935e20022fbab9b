// ranks: 1
// Law: gather_cases.hpp, on the CPU.
#include "dense/gather_cases.hpp"

namespace espalier {
namespace {

TEST(Gather, RowsAreThoseThatAreNamed) {
  for (const int threads : {1, 2}) {
    check_gather<float>(Cpu{threads}, Placement::kDevice, unchanged<float>);
    check_gather<double>(Cpu{threads}, Placement::kDevice, unchanged<double>);
    check_gather<Half>(Cpu{threads}, Placement::kDevice, to_half);
  }
}

}  // namespace
}  // namespace espalier
