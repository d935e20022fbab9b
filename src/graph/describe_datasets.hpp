// What an open graph file must be: the checks of shapes and types of its data sets, none of whose
// contents is read. They throw UserError(kInput) on all ranks or on none.
#pragma once

#include <string>
#include <utility>

#include "espalier/base/error.hpp"
#include "open_graph_file.hpp"

namespace espalier {

/// The checks of one data set each.
class Describer {
 public:
  explicit Describer(const std::string& path) : path_(path) {}

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    input_error("graph file {}: {}; {}", path_, fmt::format(format, std::forward<Args>(args)...),
                kWriteAgain);
  }
  void require(const hdf5::Dataset& dataset) const {
    if (!dataset.exists()) fail("there is no dataset {}", dataset.name);
  }
  void check_dimensions(const hdf5::Dataset& dataset, std::size_t least, std::size_t most) const {
    if (dataset.shape.size() < least || dataset.shape.size() > most)
      fail("{} has {} dimensions, expected {}", dataset.name, dataset.shape.size(),
           least == most ? std::to_string(least) : fmt::format("{} or {}", least, most));
  }
  void check_length(const hdf5::Dataset& dataset, std::int64_t rows, const char* what,
                    const char* owner = "the graph") const {
    if (dataset.rows() != rows)
      fail("{} has {} rows, but {} has {} {}", dataset.name, dataset.rows(), owner, rows, what);
  }
  void check_integers(const hdf5::Dataset& dataset) const {
    if (!dataset.is_integer()) fail("{} does not hold integers", dataset.name);
  }
  void check_numbers(const hdf5::Dataset& dataset) const {
    if (!dataset.is_number()) fail("{} does not hold numbers", dataset.name);
  }

 private:
  const std::string& path_;
};

/// The matrix: indptr, indices and weights, which are open.
void describe_graph(OpenGraphFile& h, const Describer& describe);
/// What the schema is read from, which is open, too.
void describe_schema(OpenGraphFile& h, const Describer& describe);
/// Open the vertices' data sets type by type, and the edges' relation by relation, and describe
/// them; the schema is known.
void describe_types(OpenGraphFile& h, const Describer& describe);
void describe_relations(OpenGraphFile& h, const Describer& describe);

}  // namespace espalier
