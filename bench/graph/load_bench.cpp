// ranks: 2
// What checking the digests of a graph file costs while it is loaded. Runs on any number of ranks.
//
// Derivation: loading is a copy of the file's bytes from the page cache and the checks of values;
// the digest is one more pass over what was read, a hash and an addition per entry. The bound is
// the same loading without it (Verify::kNo), measured right after. Rate and bound count the file's
// bytes per second of the slowest rank; goal: ratio >= 1 / 1.15.
//
// Verification: the digests found are those that the writer stated, and content is the same
// both ways.
#include <filesystem>

#include "espalier/base/config.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/train/targets.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kScale = 20, kEdgeFactor = 16, kFeatures = 128, kClasses = 16;

class Load {
 public:
  Load(const Grid& grid, std::string path) : grid_(grid), path_(std::move(path)) {}

  double gigabytes() const { return 1e-9 * static_cast<double>(std::filesystem::file_size(path_)); }
  // What `train` reads.
  double seconds(Verify verify) {
    grid_.world().barrier();
    const double mine = seconds_of([&] {
      const GraphFile file(grid_.world(), path_, verify);
      const auto a = read_dist_csr<std::int32_t>(grid_, file, Topology::kPartitioned);
      const Ownership blocks = block_partition(file.info().nodes, grid_.rows());
      const auto targets = read_targets(grid_, file, blocks, Config());
      const auto features = read_features(grid_, file, blocks, input_tables(file.info(), 0), "none");
      found_ = file.content();
      entries_ = a.local.entries();
    });
    return grid_.world().all_reduce(mine, Reduction::kMax, "bench");
  }
  std::int64_t count_wrong() {
    seconds(Verify::kNo);
    const auto stated = found_;
    const auto entries = entries_;
    seconds(Verify::kYes);
    return (stated.file != found_.file) + (stated.datasets != found_.datasets) + (entries != entries_);
  }

 private:
  const Grid& grid_;
  std::string path_;
  ContentDigests found_;
  std::int64_t entries_ = 0;
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const Session session(&argc, &argv);
  const auto& world = session.world();
  const Grid grid(world, 1);
  const auto path = std::filesystem::temp_directory_path() / "espalier-load-bench.h5";
  generate_rmat(world, {kScale, kEdgeFactor, true, false}, {kFeatures, kClasses, 1, false},
                OutputFile(path.string(), true));
  int code = 0;
  {
    const auto load = std::make_shared<Load>(grid, path);
    const double gigabytes = load->gigabytes();
    code =
        compare(argc, argv, "Loading a graph file, its digests checked; bound: the same without", "GB/s",
                {{fmt::format("R-MAT {} f={} {} ranks", kScale, kFeatures, grid.ranks()), gigabytes,
                  [=] { return load->seconds(Verify::kYes); },
                  [=] { return gigabytes / load->seconds(Verify::kNo); }, load->count_wrong(), grid.ranks()}},
                world.rank() == 0);
  }
  world.barrier();
  if (world.rank() == 0) std::filesystem::remove(path);
  return code;
}
