#include "espalier/graph/ogb_import.hpp"

#include <filesystem>
#include <memory>
#include <string>

#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "first_rank.hpp"
#include "import_edges.hpp"
#include "import_tables.hpp"
#include "input_files.hpp"
#include "ogb_folder.hpp"
#include "ogb_typed_splits.hpp"

namespace espalier {

namespace {

constexpr const char* kBinaryTypes = "edge_index_dict.npz";

bool has_raw(const OgbOptions& options, const char* name) {
  return std::filesystem::exists(std::filesystem::path(options.folder) / "raw" / name);
}

void import_vertices(const Communicator& comm, const OgbFolder* folder, const OgbOptions& options,
                     const std::vector<std::string>& names, std::int64_t nodes, GraphWriter& writer) {
  const double start = now();
  std::unique_ptr<FeatureRows> rows;
  on_first_rank(comm, [&] { rows = folder->open_features(); });
  const auto columns = import_features(comm, std::move(rows), nodes, options.half, writer);
  if (columns > 0) log::info("features   {} x {} in {:.1f} s", nodes, columns, now() - start);
  OgbLabels labels;
  std::vector<Splits> splits(names.size());
  on_first_rank(comm, [&] {
    labels = read_labels(folder->open_labels(), nodes);
    if (labels.columns > 0) log::info("labels     {}", in_words(labels));
    for (std::size_t k = 0; k < names.size(); ++k) {
      splits[k] = folder->read_splits(labels, names[k]);
      log::info("splits     {}", in_words(splits[k], kept_name(names, k)));
    }
  });
  import_labels(comm, labels, writer);
  for (std::size_t k = 0; k < names.size(); ++k) import_splits(splits[k], writer, 0, kept_name(names, k));
}

// Collective. Options that mean nothing where there are types are refused, not ignored.
void import_typed_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  if (options.symmetrize)
    usage_error(
        "--symmetrize: {} has several types of vertices, and each relation gets an inverse without it; leave "
        "it "
        "out (--no-inverse leaves the inverses out)",
        options.folder);
  if (options.edge_weight)
    usage_error("--edge-weight: edges of a graph with several types have no weights; leave it out");
  import_typed(comm, options, output, [&] {
    return has_raw(options, kBinaryTypes) ? open_binary_ogb_folder(options) : open_typed_ogb_folder(options);
  });
}

void import_plain_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  // 1. Is the folder one of ours, and can the file be written?
  std::unique_ptr<OgbFolder> folder;
  GraphDescription description;
  const auto names = names_of_splits(options.split);
  GivenEdges given;
  on_first_rank(comm, [&] {
    folder = has_raw(options, "data.npz") ? open_ogb_data_folder(options) : open_csv_ogb_folder(options);
    description = folder->description();
    // What is wrong with the command line is found before the edges are read.
    for (const auto& name : names) find_split_folder(options.folder, name);
    folder->check_edge_weight();
    given = {folder.get(), folder->nodes()};
    given.report.one_direction_by = one_direction_by(options.folder);
    given.open_features = [&](std::int64_t count) { return folder->open_edge_features(count); };
  });
  given.report.options = {options.symmetrize, options.drop_self_loops, options.duplicates,
                          options.duplicate_features};
  given.half = options.half;
  GraphWriter writer(comm, output);

  // 2. Edges, with ids as wide as the graph needs.
  const auto imported = import_edges(comm, given, writer);

  // 3. Features, labels and splits.
  import_vertices(comm, folder.get(), options, names, imported.nodes, writer);

  // 4. The file appears. What rank 0 read of the folder's description is everyone's: attributes are
  //    written by all ranks.
  description.name = comm.broadcast_text(description.name, 0, "import");
  description.source = comm.broadcast_text(description.source, 0, "import");
  description.directed = imported.directed;
  writer.commit(description);
}

}  // namespace

void import_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  bool typed = false;
  on_first_rank(comm, [&] {
    refuse_input_as_output(options.folder, output.path);
    typed = has_raw(options, kBinaryTypes) ||
            !find_table(std::filesystem::path(options.folder) / "raw", "num-node-dict").empty();
    if (!typed && !options.inverses)
      usage_error("--no-inverse: {} has no types of vertices and so no inverse relations; leave it out",
                  options.folder);
  });
  if (agreed(comm, typed) != 0)
    import_typed_ogb(comm, options, output);
  else
    import_plain_ogb(comm, options, output);
}

}  // namespace espalier
