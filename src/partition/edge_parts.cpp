#include "espalier/partition/edge_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "edge_cut_methods.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/archive.hpp"
#include "espalier/partition/order.hpp"
#include "partition_pattern.hpp"

namespace espalier {

Csr<std::int64_t> undirected_rows(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    auto rows = file.read_rows<std::int64_t>(begin, end);
    rows.columns = info.nodes;
    if (!info.typed) return rows;
    std::int64_t kept = 0, from = 0;
    for (std::int64_t row = 0; row < rows.rows; ++row) {
      const auto first = rows.indices.begin() + from, last = rows.indices.begin() + rows.indptr[row + 1];
      for (auto column = first; column != last; ++column) *column = info.schema.vertex_of(*column);
      std::sort(first, last);
      const auto size = std::unique(first, last) - first;
      std::copy_n(first, size, rows.indices.begin() + kept);
      from = std::exchange(rows.indptr[row + 1], kept += size);
    }
    rows.indices.resize(kept);
    return rows;
  };
  return symmetric_rows({.world = world,
                         .nodes = info.nodes,
                         .edges = info.edges,
                         .clusters = 1,
                         .weights = {},
                         .read_rows = read});
}

std::span<const EdgeCutMethod> edge_cut_methods() {
  static constexpr EdgeCutMethod kMethods[] = {
      {"expansion", "our neighbourhood expansion: few copies, parts even in edges, and mostly in vertices",
       expand_evenly, true},
      {"dne", "DistributedNE with tau = 1.01 (Hanai et al. 2019)", expand_as_dne, true},
      {"adadne", "AdaDNE as GLISP has it; parts of small graphs with hubs can be very uneven",
       expand_as_adadne, true},
      {"hdrf", "HDRF (Petroni et al. 2015): one pass over the edges on one rank", stream_pairs},
  };
  return kMethods;
}

EdgeCutQuality quality_of(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts) {
  std::vector<std::int64_t> vertices(static_cast<std::size_t>(task.parts), 0), entries(vertices);
  std::int64_t sums[] = {0, 0, 0};  // vertices with a pair, their copies, those of one part
  std::vector<std::uint16_t> of_row;
  for (std::int64_t v = 0; v < task.rows.rows; ++v) {
    parts_of_row(task.rows, parts, v, of_row);
    for (const auto part : of_row) ++vertices[part];
    sums[0] += !of_row.empty();
    sums[1] += std::ssize(of_row);
    sums[2] += of_row.size() == 1;
  }
  for (const auto part : parts) ++entries[part];
  for (auto* list : {&vertices, &entries}) task.world.all_reduce(std::span(*list), Reduction::kSum, kCut);
  task.world.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, kCut);
  if (sums[0] == 0) return {};
  const auto balance = [](const std::vector<std::int64_t>& of) {
    return static_cast<double>(std::ranges::max(of)) / static_cast<double>(std::ranges::min(of));
  };
  const auto all = static_cast<double>(sums[0]);
  return {static_cast<double>(sums[1]) / all, balance(vertices), balance(entries),
          static_cast<double>(sums[2]) / all};
}

// ---- the file ----

namespace {

constexpr ArchiveFormat kPartsFormat = {"espalier-edge-parts", "edge parts",
                                        "make them with `espalier partition GRAPH --edges`"};

// ---- writing ----

// Collective. Of each entry of my rows in the file.
Buffer<std::uint16_t> parts_in_file(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts,
                                    const GraphFile& file) {
  const auto& info = file.info();
  Buffer<std::uint16_t> found;
  in_row_parts(
      task.world, task.nodes,
      [&](std::int64_t begin, std::int64_t end) {
        const auto rows = file.read_rows<std::int64_t>(begin, end);
        for (auto v = begin; v < end; ++v) {
          const auto pairs = v - task.mine().begin;
          const auto of_loop = task.rows.row_size(pairs) > 0 ? parts[task.rows.row_begin(pairs)]
                                                             : static_cast<std::uint16_t>(v % task.parts);
          for (const auto column : rows.row_indices(v - begin)) {
            const auto u = info.schema.vertex_of(column);
            found.push_back(u == v ? of_loop : parts[entry_at(task.rows, pairs, u)]);
          }
        }
      },
      1 + info.edges / info.nodes);
  return found;
}

}  // namespace

void write_edge_parts(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts, const GraphFile& file,
                      const std::string& method, const OutputFile& output_file) {
  const auto& info = file.info();
  const auto mine = parts_in_file(task, parts, file);
  const auto sizes = task.world.all_gather(std::ssize(mine), kCut);
  const auto begin = std::accumulate(sizes.begin(), sizes.begin() + task.world.rank(), std::int64_t{0});
  hdf5::Output output(task.world, output_file);
  if (task.parts <= 256)
    write_array<std::uint8_t>(output, "/part", {info.edges}, begin,
                              Buffer<std::uint8_t>(mine.begin(), mine.end()), kCut);
  else
    write_array<std::uint16_t>(output, "/part", {info.edges}, begin, mine, kCut);
  std::vector<std::int64_t> entries(static_cast<std::size_t>(task.parts), 0);
  for (const auto part : mine) ++entries[part];
  task.world.all_reduce(std::span(entries), Reduction::kSum, kCut);
  const auto some = even_range(task.parts, task.world.size(), task.world.rank());
  write_array<std::int64_t>(output, "/entries", {task.parts}, some.begin,
                            std::span(entries).subspan(some.begin, some.size()), kCut);
  ArchiveWriter archive(output.file(), kPartsFormat);
  archive("method", method);
  archive("parts", task.parts);
  archive("pattern", pattern_digest(file.content()));
  output.require(archive.good(), "an attribute");
  output.commit();
}

// ---- reading ----

namespace {

hdf5::Dataset open_part(const ArchiveReader& archive, std::int64_t parts) {
  return archive.open_array(
      "/part", {-1}, parts <= 256 ? hdf5::memory_type<std::uint8_t>() : hdf5::memory_type<std::uint16_t>());
}

EdgePartsInfo read_parts_here(const std::string& path) {
  const auto archive = ArchiveReader::look_at(kPartsFormat, path);
  EdgePartsInfo info;
  std::int64_t parts = 0, sum = 0;
  archive("method", info.method);
  archive("pattern", info.pattern);
  archive("parts", parts);
  if (parts < 1 || parts > kMostEdgeParts)
    archive.fail(fmt::format("its attribute parts is {}, not a number from 1 to {}", parts, kMostEdgeParts));
  info.entries = archive.array<std::int64_t>("/entries", {parts});
  for (const auto of_part : info.entries)
    if (of_part < 0 || __builtin_add_overflow(sum, of_part, &sum)) sum = -1;
  if (const auto rows = open_part(archive, parts).rows(); sum != rows)
    archive.fail(fmt::format("/entries does not add up to the {} entries of /part", rows));
  return info;
}

}  // namespace

std::int64_t EdgePartsInfo::edges() const {
  return std::accumulate(entries.begin(), entries.end(), std::int64_t{0});
}

EdgePartsInfo read_edge_parts_info(const Communicator& comm, const std::string& path) {
  EdgePartsInfo info;
  agree(comm, [&] {
    if (comm.rank() == 0) info = read_parts_here(path);
  });
  std::int64_t head[] = {info.parts(), info.pattern.has_value(),
                         static_cast<std::int64_t>(info.pattern.value_or(0))};
  comm.broadcast(std::span<std::int64_t>(head), 0, kCut);
  info.method = comm.broadcast_text(info.method, 0, kCut);
  if (head[1] != 0) info.pattern = static_cast<std::uint64_t>(head[2]);
  info.entries.resize(static_cast<std::size_t>(head[0]));
  comm.broadcast(std::span(info.entries), 0, kCut);
  return info;
}

EdgePartsReader::EdgePartsReader(const Communicator& comm, const std::string& path, EdgePartsInfo info)
    : comm_(comm), info_(std::move(info)) {
  agree(comm, [&] {
    archive_ = std::make_shared<ArchiveReader>(kPartsFormat, path);
    part_ = std::make_shared<hdf5::Dataset>(open_part(*archive_, info_.parts()));
    if (part_->rows() != info_.edges()) archive_->fail("changed while it was read");
  });
}

Buffer<std::uint16_t> EdgePartsReader::read(std::int64_t begin, std::int64_t end) {
  Buffer<std::uint16_t> parts(end - begin);
  const auto read_as = [&]<class Number>(Number) {
    Buffer<Number> stored(end - begin);
    archive_->read(*part_, hdf5::memory_type<Number>(), {begin, end}, stored.data());
    digest_ += content_digest(std::span<const Number>(stored), begin);
    std::ranges::copy(stored, parts.begin());
  };
  agree(comm_, [&] {
    if (part_->type_size == 1)
      read_as(std::uint8_t());
    else
      read_as(std::uint16_t());
    const auto none = std::ranges::find_if(parts, [&](int part) { return part >= info_.parts(); });
    if (none != parts.end())
      archive_->fail(
          fmt::format("entry {} is in part {} of {}", begin + (none - parts.begin()), *none, info_.parts()));
  });
  return parts;
}

void EdgePartsReader::check() const {
  const auto digest = comm_.all_reduce(digest_, Reduction::kSum, kCut);
  agree(comm_, [&] { archive_->check_digest(*part_, digest); });
}

}  // namespace espalier
