#include "espalier/job/kept_layers.hpp"

#include <filesystem>

#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/feature/spilled_rows.hpp"
#include "espalier/file/content_digest.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char *kRows = "/embeddings", *kMadeOf = "made_of", *kDigest = "rows_digest";

std::uint64_t digest_of(std::int64_t first, const Matrix<float>& rows) {
  return content_digest(std::span<const float>(rows.data.data(), rows.data.size()), first * rows.columns);
}

// Those that a run which was killed had begun to write.
void remove_partial_files(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const auto name = entry.path().filename().string();
        name.starts_with("layer-") && name.find(".h5.partial-") != std::string::npos)
      fs::remove(entry.path(), none);
}

// Of a file that is there.
std::string attribute_of(const std::string& path, const char* name) {
  std::string value;
  const auto file = hdf5::open_file_unlocked(path);
  if (file.valid()) hdf5::read_text_attribute(file, name, value);
  return value;
}

}  // namespace

std::string KeptLayers::path(int layer) const {
  return fmt::format("{}/layer-{}.h5", folder_, layer);
}

KeptLayers::KeptLayers(const Job& job, std::string folder, const std::string& made_of, int hidden)
    : job_(job),
      folder_(std::move(folder)),
      made_of_(hex(content_digest(std::span<const char>(made_of), 0))),
      hidden_(hidden) {
  const auto& world = job.grid->world();
  agree(world, [&] {
    if (world.rank() != 0) return;
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) usage_error("--resume {}: cannot make the folder: {}", folder_, error.message());
    remove_partial_files(folder_);
    for (int layer = 1; layer <= hidden_; ++layer) {
      if (!fs::exists(path(layer))) continue;
      const auto said = attribute_of(path(layer), kMadeOf);
      if (said.empty())
        usage_error("--resume {}: {} is damaged, or no kept layer; remove it, and it is computed again",
                    folder_, path(layer));
      if (said != made_of_)
        usage_error(
            "--resume {}: {} is of another network, graph or config; remove it, or name another folder",
            folder_, path(layer));
      done_ = layer;
    }
  });
  world.broadcast(&done_, 1, 0, "setup");
}

RowStore KeptLayers::read(std::int64_t width) const {
  constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
  const auto& grid = *job_.grid;
  const auto& blocks = job_.owners.blocks;
  const int part = blocks.parts() > 1 ? grid.row() : 0;
  const auto count = blocks.size(part), at_once = std::max<std::int64_t>(1, kBytesAtOnce / (4 * width));
  const auto name = path(done_);
  std::optional<SpilledRows> spilled;
  if (!job_.config.run.spill.empty())
    agree(grid.world(), [&] { spilled.emplace(job_.config.run.spill, count, width); });
  Matrix<float> rows(spilled ? 0 : count, width), piece;
  std::uint64_t digest = 0;
  agree(grid.world(), [&] {
    const auto file = hdf5::open_file_unlocked(name);
    const auto dataset = hdf5::open_dataset(file, kRows);
    for (std::int64_t from = 0; from < count; from += at_once)
      for (const auto& range : blocks.vertices(part, {from, std::min(count, from + at_once)})) {
        piece.resize(range.size(), width);
        if (!dataset.exists() || !hdf5::read_slab(dataset, hdf5::memory_type<float>(),
                                                  {range.begin, range.end, width}, piece.data.data()))
          input_error("{}: cannot be read; remove it, and the command computes layer {} again", name, done_);
        digest += digest_of(range.begin, piece);
        const auto place = blocks.local(range.begin);
        if (spilled)
          spilled->write(place, piece);
        else
          std::ranges::copy(piece.data, rows.row(place));
      }
  });
  const auto of_block_rows = grid.column_comm().all_reduce(digest, Reduction::kSum, "setup");
  const auto found = hex(blocks.parts() > 1 ? of_block_rows : digest);
  agree(grid.world(), [&] {
    if (found != attribute_of(name, kDigest))
      input_error("{}: does not hold what it held; remove it, and the command computes layer {} again", name,
                  done_);
  });
  if (spilled) return {grid, blocks, spilled->release()};
  return {grid, blocks, std::move(rows)};
}

void KeptLayers::begin(int layer, std::int64_t width) {
  open_ = layer;
  width_ = width;
  digest_ = 0;
  RowTable all = {.vertices = {0, job_.graph.nodes}};
  file_ = std::make_unique<RowFile>(job_.grid->world(), OutputFile{path(layer), true},
                                    RowFileShape{.rows = kRows, .width = width, .tables = {std::move(all)}});
}

void KeptLayers::take(std::int64_t first, const Matrix<float>& rows) {
  digest_ += digest_of(first, rows);
  file_->write_rows(first, rows);
}

void KeptLayers::check() {
  if (file_) file_->check();
}

void KeptLayers::end() {
  const auto digest = job_.grid->world().all_reduce(digest_, Reduction::kSum, "setup");
  file_->commit([&](ArchiveWriter& archive) {
    archive(kMadeOf, made_of_);
    archive(kDigest, digest);
  });
  file_.reset();
  done_ = open_;
}

void KeptLayers::remove() {
  if (job_.grid->world().rank() != 0) return;
  std::error_code none;
  for (int layer = 1; layer <= hidden_; ++layer) fs::remove(path(layer), none);
  fs::remove(folder_, none);  // where nothing else is in it
}

}  // namespace espalier
