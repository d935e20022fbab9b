// Archives of numpy's arrays (.npz): a zip of .npy files, compressed or not.
//
//     auto edges = NpzFile("edge_index_dict.npz").open("author___writes___paper");
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "npy_file.hpp"

namespace espalier {

/// A .npz archive: named arrays.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  /// In the order of the archive.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return path_; }
  bool has(const std::string& name) const;
  /// Throws UserError when there is none of this name. May outlive the NpzFile.
  std::unique_ptr<NpyArray> open(const std::string& name) const;

 private:
  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace espalier
