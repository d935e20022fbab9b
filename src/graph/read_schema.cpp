// The names and numbers that describe the types of a file of version 2.
#include <limits>
#include <stdexcept>

#include "open_graph_file.hpp"

namespace espalier {

std::vector<std::string> read_texts(OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t begin,
                                    std::int64_t end) {
  std::vector<std::string> texts;
  const bool good = hdf5::read_texts(dataset, begin, end, texts);
  agree(h.comm, [&] {
    if (!good) fail(h, "{} is no list of texts of fixed length (h5py: dtype 'S')", dataset.name);
  });
  if (h.view.verify == Verify::kNo) return texts;
  const auto hashes = hashes_of(texts);
  check_content(h, dataset, begin, hashes.size(),
                content_digest(std::span<const std::int64_t>(hashes), begin));
  return texts;
}

std::vector<std::string> read_names(OpenGraphFile& h, const hdf5::Dataset& dataset) {
  return read_texts(h, dataset, 0, dataset.rows());
}

Buffer<std::int64_t> read_list(OpenGraphFile& h, const hdf5::Dataset& dataset) {
  return read_checked<std::int64_t>(h, dataset, {0, dataset.rows(), 1}, [](const auto&) {});
}

namespace {

// A place in a list of a few; what lies far outside stays outside.
int place(std::int64_t number) {
  return static_cast<int>(
      std::clamp<std::int64_t>(number, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

}  // namespace

Schema read_schema(OpenGraphFile& h) {
  const auto names = read_names(h, h.type_name), relations = read_names(h, h.relation_name);
  const auto offsets = read_list(h, h.type_offset);
  const auto sources = read_list(h, h.relation_source), targets = read_list(h, h.relation_target),
             inverses = read_list(h, h.relation_inverse);
  std::vector<VertexType> types;
  for (std::size_t t = 0; t < names.size(); ++t) types.push_back({names[t], offsets[t], offsets[t + 1]});
  std::vector<Relation> list;
  for (std::size_t r = 0; r < relations.size(); ++r)
    list.push_back({relations[r], place(sources[r]), place(targets[r]), place(inverses[r])});
  Schema schema;
  agree(h.comm, [&] {
    if (offsets.back() != h.info.nodes)
      fail(h, "/types/offset ends with {}, but the graph has {} vertices", offsets.back(), h.info.nodes);
    try {
      schema = Schema(std::move(types), std::move(list));
    } catch (const std::invalid_argument& error) {
      fail(h, "/types and /relations: {}", error.what());
    }
  });
  return schema;
}

}  // namespace espalier
