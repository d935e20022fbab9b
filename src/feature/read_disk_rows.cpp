// Digests of the rows of a graph file that stay there: all are read once, at the start. Beside
// disk_rows.cpp, as a simulation (simulate.mk) leaves out what reads graph files.
#include <algorithm>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/feature/disk_rows.hpp"

namespace espalier {

// Each rank its even share of the chunks, some at a time.
template <class S>
void DiskRows::digest_part(const Communicator& comm, const GraphFile& file, int type, const Part& part) {
  constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
  const auto rows = part.end - part.begin, chunks = (rows + chunk_rows_ - 1) / chunk_rows_,
             at_once = std::max<std::int64_t>(1, kBytesAtOnce / (chunk_rows_ * part.form.row_bytes()));
  const auto mine = even_range(chunks, comm.size(), comm.rank());
  const auto rounds = (chunks / comm.size() + at_once) / at_once;
  const auto vertices = file.info().schema.types()[type].begin;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto some = even_range(mine.size(), rounds, round);
    const auto first = mine.begin + some.begin, last = mine.begin + some.end;
    const auto begin = std::min(rows, first * chunk_rows_), end = std::min(rows, last * chunk_rows_);
    const auto read = file.read_features<S>(vertices + begin, vertices + end, type);
    for (auto chunk = first; chunk < last; ++chunk) {
      const auto from = chunk * chunk_rows_, to = std::min(rows, from + chunk_rows_);
      digests_[part.first_chunk + chunk] =
          digest_rows(part.form, reinterpret_cast<const std::byte*>(read.row(from - begin)), to - from, from);
    }
  }
}

DiskRows::DiskRows(const Communicator& comm, const GraphFile& file, const InputTable& table)
    : of_("graph file " + file.path()),
      verify_(file.view().verify == Verify::kYes),
      by_place_(false),
      form_{table.kept, table.width} {
  const auto& types = file.info().schema.types();
  std::vector<int> held;
  std::int64_t chunks = 0;
  for (int t = 0; t < std::ssize(types); ++t)
    if (table.held.holds_type(t)) rows_ += types[t].size();
  chunk_rows_ = rows_of_chunk(rows_, form_.row_bytes());
  for (int t = 0; t < std::ssize(types); ++t) {
    if (!table.held.holds_type(t)) continue;
    const auto plain = file.plain_features(t);
    ESPALIER_CHECK(plain.has_value(), "features of type {} of {}, which is compressed", t, file.path());
    const auto begin = parts_.empty() ? 0 : parts_.back().end;
    const RowForm form = {&kind_in_file(plain->half), table.width};
    parts_.push_back({begin, begin + plain->rows, plain->offset, form, plain->name, chunks});
    chunks += (plain->rows + chunk_rows_ - 1) / chunk_rows_;
    held.push_back(t);
  }
  agree(comm, [&] { file_.emplace(RangedFile::open(file.path())); });
  digests_.assign(static_cast<std::size_t>(chunks), 0);
  for (std::size_t k = 0; k < parts_.size(); ++k)
    with_numbers_of(*parts_[k].form.kind,
                    [&]<class S>(S) { digest_part<S>(comm, file, held[k], parts_[k]); });
  comm.all_reduce(std::span(digests_), Reduction::kSum, "setup");
}

}  // namespace espalier
