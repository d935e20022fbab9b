// Arrays as numpy writes them (.npy, .npz), read as a stream: memory for one piece, whatever the
// size of the array.
//
//     auto array = open_npy("node_feat.npy");
//     std::vector<double> row(array->columns());
//     array->read_row(row);    // the next entries, in the order of the file
//
// Numbers of any width and byte order, and truth values; texts of fixed length only where they are
// asked for; no objects or structures. Every error is a UserError(kInput) that starts with the
// array's name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// Bytes from the first to the last.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual std::int64_t size() const = 0;
  /// How many were read: fewer than `count` at the end. Throws UserError when they are damaged.
  virtual std::int64_t read(char* to, std::int64_t count) = 0;
  /// Passes over so many, or those that are left.
  virtual void skip(std::int64_t count);
};

class NpyArray {
 public:
  /// Reads the header. `name` is for messages; `texts`: the array may hold texts.
  NpyArray(std::unique_ptr<ByteStream> bytes, const std::string& name, bool texts = false);

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// 1 of a vector, which is one column.
  std::int64_t columns() const { return shape_.size() < 2 ? 1 : shape_[1]; }
  std::int64_t entries() const;
  /// Does the first index run fastest in the file?
  bool by_columns() const { return by_columns_; }
  bool half() const { return kind_ == 'f' && width_ == 2; }
  bool is_truth() const { return kind_ == 'b'; }
  bool is_text() const { return kind_ == 'S' || kind_ == 'U'; }

  /// The next entries; there are so many. After the last the stream is found to end there, whole.
  /// Throws UserError where the array has other than whole numbers.
  void read(std::span<std::int64_t> values);
  /// Passes over so many entries.
  void skip(std::int64_t entries);
  /// The same of an array of texts, as UTF-8.
  void read(std::span<std::string> texts);
  /// The next row of a matrix (or entry of a vector), whichever order it is stored in. All of one
  /// that is stored by columns is in memory, in its own width, until its last row was read.
  void read_row(std::span<double> row);

 private:
  void read_header(bool texts);
  void parse_header(const std::string& header, bool texts);
  std::string entry(const std::string& header, const std::string& key) const;
  void take(char* to, std::int64_t count);
  void check_end();
  template <class T>
  void read_as(std::span<T> values);
  template <class T>
  void convert(std::span<T> values) const;

  std::unique_ptr<ByteStream> bytes_;
  std::string name_;
  std::vector<std::int64_t> shape_;
  bool by_columns_ = false;
  char kind_ = 'f';       // f, i, u or b; S or U of texts
  int width_ = 4;         // bytes of an entry
  bool swapped_ = false;  // is the byte order not this machine's?
  std::int64_t left_ = 0;
  Buffer<char> by_column_;     // the bytes of a matrix whose rows are read
  std::int64_t next_row_ = 0;  // of them
  Buffer<char> piece_;
};

std::unique_ptr<NpyArray> open_npy(const std::string& path, bool texts = false);

/// A .npz archive, a zip of .npy files, compressed or not: named arrays (npy_file.cpp).
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  /// In the order of the archive.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return path_; }
  bool has(const std::string& name) const;
  /// Throws UserError when there is none of this name. May outlive the NpzFile.
  std::unique_ptr<NpyArray> open(const std::string& name, bool texts = false) const;

 private:
  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace espalier
