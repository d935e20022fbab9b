#include "espalier/graph/ogb_import.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/agree.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace {

// Collective. Runs `work` on rank 0; its error is everyone's.
template <class Work>
void on_first_rank(const Communicator& comm, Work work) {
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    try {
      work();
    } catch (
        const std::filesystem::filesystem_error& error) {  // a folder without permission, a name too long
      input_error("{}: {}", error.path1().string(), error.code().message());
    }
  });
}

void report_edges(const EdgeCounts& counts, std::int64_t entries, double seconds) {
  log::info(
      "edges      {} lines in {:.1f} s, {} reversed edges added, {} self loops dropped, {} duplicates "
      "merged: {} entries",
      counts.given, seconds, counts.reversed, counts.loops_dropped, counts.merged, entries);
}

// Reads and writes the adjacency matrix; returns whether the graph is directed.
template <class Index>
bool import_edges(const Communicator& comm, const std::optional<OgbFolder>& folder, const OgbOptions& options,
                  GraphWriter& writer) {
  Csr<Index> rows;
  bool directed = false;
  on_first_rank(comm, [&] {
    const double start = now();
    EdgeCounts counts;
    auto edges = folder->read_edges<Index>();
    rows = build_rows(edges, {0, folder->nodes()}, folder->nodes(),
                      {options.symmetrize, options.drop_self_loops}, counts);
    directed = !options.symmetrize && !is_symmetric(rows);
    report_edges(counts, rows.entries(), now() - start);
  });
  writer.write_adjacency(rows);
  return directed;
}

template <class T>
void import_features(const Communicator& comm, const std::optional<OgbFolder>& folder, GraphWriter& writer) {
  Matrix<T> features;
  on_first_rank(comm, [&] {
    const double start = now();
    features = folder->read_features<T>();
    if (features.rows > 0)
      log::info("features   {} x {} in {:.1f} s", features.rows, features.columns, now() - start);
  });
  if (comm.all_reduce(features.rows, Reduction::kMax, "import") > 0) writer.write_features(features);
}

void report_labels(const OgbLabels& labels) {
  if (labels.columns > 1) log::info("labels     {} columns of 0 and 1", labels.columns);
  if (labels.columns != 1) return;
  const auto unlabelled = std::count(labels.classes.begin(), labels.classes.end(), -1);
  log::info("labels     {} vertices, {} without one", labels.classes.size(), unlabelled);
}

void import_labels_and_splits(const Communicator& comm, const std::optional<OgbFolder>& folder,
                              GraphWriter& writer) {
  OgbLabels labels;
  std::array<Buffer<std::int64_t>, 3> splits;
  on_first_rank(comm, [&] {
    labels = folder->read_labels();
    report_labels(labels);
    splits = folder->read_splits(labels);
    log::info("splits     {} train, {} valid, {} test", splits[0].size(), splits[1].size(), splits[2].size());
  });
  const auto columns = comm.all_reduce(labels.columns, Reduction::kMax, "import");
  if (columns == 1) writer.write_labels(labels.classes);
  if (columns > 1) writer.write_multi_labels(labels.multi);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    writer.write_split(split, splits[static_cast<std::size_t>(split)]);
}

}  // namespace

void import_ogb(const Communicator& comm, const OgbOptions& options, const std::string& output) {
  // 1. Is the folder one of ours, and can the file be written?
  std::optional<OgbFolder> folder;
  GraphDescription description;
  on_first_rank(comm, [&] {
    folder.emplace(options);
    description = folder->describe();
    folder->split_folder();  // a wrong --split is found before the edges are read
  });
  GraphWriter writer(comm, output);

  // 2. Edges, with ids as wide as the graph needs.
  const auto nodes = comm.all_reduce(folder ? folder->nodes() : 0, Reduction::kMax, "import");
  description.directed = nodes <= std::numeric_limits<std::int32_t>::max()
                             ? import_edges<std::int32_t>(comm, folder, options, writer)
                             : import_edges<std::int64_t>(comm, folder, options, writer);
  // 3. Features.
  options.half ? import_features<Half>(comm, folder, writer) : import_features<float>(comm, folder, writer);

  // 4. Labels and splits.
  import_labels_and_splits(comm, folder, writer);

  // 5. The file appears. What rank 0 read of the folder's description is everyone's: attributes are written
  // by all ranks.
  description.name = comm.broadcast_text(description.name, 0, "import");
  description.source = comm.broadcast_text(description.source, 0, "import");
  description.directed = comm.all_reduce(description.directed ? 1 : 0, Reduction::kMax, "import") != 0;
  writer.commit(description);
}

}  // namespace espalier
