// The header of a .npy: "\x93NUMPY", version, its own length (2 bytes little-endian, 4 from version
// 2 on), then the text of a Python dictionary with the keys descr, fortran_order and shape
// (numpy.lib.format).
#include "espalier/file/npy_file.hpp"

#include <zip.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "espalier/base/error.hpp"
#include "espalier/base/half.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/file/input_files.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kBytesAtOnce = 1 << 18;    // bytes read at a time
constexpr std::int64_t kLongestText = 1 << 16;    // letters
constexpr std::int64_t kLongestHeader = 1 << 16;  // numpy's own limit is 10,000 letters

}  // namespace

// ---- the header ----

NpyArray::NpyArray(std::unique_ptr<ByteStream> bytes, const std::string& name, bool texts)
    : bytes_(std::move(bytes)), name_(name) {
  read_header(texts);
}

void NpyArray::take(char* to, std::int64_t count) {
  for (std::int64_t got = 0; got < count;) {
    const auto more = bytes_->read(to + got, count - got);
    if (more == 0) input_error("{}: ends too early; is the download complete?", name_);
    got += more;
  }
}

void NpyArray::read_header(bool texts) {
  unsigned char start[12] = {};
  take(reinterpret_cast<char*>(start), 10);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0) input_error("{}: is no array of numpy (.npy)", name_);
  std::int64_t length = start[8] | start[9] << 8, before = 10;
  if (start[6] >= 2) {
    take(reinterpret_cast<char*>(start) + 10, 2);
    length |= std::int64_t{start[10]} << 16 | std::int64_t{start[11]} << 24;
    before = 12;
  }
  if (start[6] < 1 || start[6] > 3 || length > kLongestHeader)
    input_error("{}: is of version {} of numpy's format, or damaged; 1 to 3 can be read", name_, start[6]);
  std::string header(static_cast<std::size_t>(length), '\0');
  take(header.data(), length);
  parse_header(header, texts);
  left_ = entries();
  if (const auto size = before + length + left_ * width_; bytes_->size() != size)
    input_error("{}: has {} bytes, but its header announces {}; is the download complete?", name_,
                bytes_->size(), size);
}

// What stands behind a key of the header, as written.
std::string NpyArray::entry(const std::string& header, const std::string& key) const {
  const auto found = header.find("'" + key + "':");
  if (found == std::string::npos) input_error("{}: its header has no {}", name_, key);
  const auto begin = header.find_first_not_of(' ', found + key.size() + 3);
  if (begin == std::string::npos) input_error("{}: its header is damaged", name_);
  const auto close = header[begin] == '(' ? header.find(')', begin) : header.find_first_of(",}", begin);
  return header.substr(begin, close == std::string::npos ? close : close - begin);
}

namespace {
// How many a text has in an array of texts of fixed length, '<U5' or '|S12'; 0: it is none.
std::int64_t letters_of(const std::string& type) {
  if (type.size() < 5 || (type[2] != 'S' && type[2] != 'U')) return 0;
  std::int64_t letters = 0;
  const auto [end, error] = std::from_chars(type.data() + 3, type.data() + type.size() - 1, letters);
  const bool good = error == std::errc() && end == type.data() + type.size() - 1;
  return good && letters <= kLongestText ? letters : 0;
}
}  // namespace

void NpyArray::parse_header(const std::string& header, bool texts) {
  const auto type = entry(header, "descr");  // '<f4'
  const auto order = entry(header, "fortran_order"), shape = entry(header, "shape");
  if (type.starts_with('['))
    input_error("{}: holds records of several fields; save each field as an array of its own", name_);
  const bool known = type.size() == 5 && type[0] == '\'' && type[4] == '\'' &&
                     std::strchr("<>|=", type[1]) != nullptr && std::strchr("fiub", type[2]) != nullptr;
  kind_ = known ? type[2] : '?';
  width_ = known ? type[3] - '0' : 0;
  const auto letters = texts ? letters_of(type) : 0;
  if (letters > 0) {
    kind_ = type[2];
    width_ = static_cast<int>(letters) * (kind_ == 'U' ? 4 : 1);
  } else if (!std::has_single_bit(static_cast<unsigned>(width_)) || width_ > 8 ||
             (kind_ == 'f' && width_ == 1) || (kind_ == 'b' && width_ != 1))
    input_error("{}: holds {}, not numbers of 1 to 8 bytes", name_, type);
  swapped_ =
      kind_ != 'S' && width_ > 1 && type[1] == (std::endian::native == std::endian::little ? '>' : '<');
  by_columns_ = order == "True";
  std::int64_t entries = 1;
  for (const char *at = shape.data() + 1, *end = shape.data() + shape.size(); shape[0] == '(' && at < end;) {
    std::int64_t size = -1;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0 || __builtin_mul_overflow(entries, size, &entries) ||
        entries >> 50 != 0)
      input_error("{}: its header says the shape {})", name_, shape);
    shape_.push_back(size);
    for (at = after; at < end && (*at == ',' || *at == ' ');) ++at;
  }
  if (shape_.empty() || shape_.size() > 2)
    input_error("{}: has {} dimensions; vectors and matrices can be read", name_, shape_.size());
}

std::int64_t NpyArray::entries() const {
  std::int64_t count = 1;
  for (const auto size : shape_) count *= size;
  return count;
}

// ---- entries ----

namespace {

template <class Stored, class T>
void convert_from(const char* bytes, bool swapped, std::span<T> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    char entry[sizeof(Stored)];
    std::memcpy(entry, bytes + k * sizeof entry, sizeof entry);
    if (swapped) std::reverse(entry, entry + sizeof entry);
    Stored value;
    std::memcpy(&value, entry, sizeof entry);
    if constexpr (std::is_same_v<Stored, Half>)
      values[k] = static_cast<T>(to_float(value));
    else
      values[k] = static_cast<T>(value);
  }
}

}  // namespace

// The first values of the piece.
template <class T>
void NpyArray::convert(std::span<T> values) const {
  const auto from = [&]<class Stored>(Stored) { convert_from<Stored>(piece_.data(), swapped_, values); };
  if (kind_ == 'f') {
    width_ == 2 ? from(Half()) : width_ == 4 ? from(float()) : from(double());
  } else if (kind_ == 'i') {
    width_ == 1   ? from(std::int8_t())
    : width_ == 2 ? from(std::int16_t())
    : width_ == 4 ? from(std::int32_t())
                  : from(std::int64_t());
  } else {
    width_ == 1   ? from(std::uint8_t())
    : width_ == 2 ? from(std::uint16_t())
    : width_ == 4 ? from(std::uint32_t())
                  : from(std::uint64_t());
  }
}

template <class T>
void NpyArray::read_as(std::span<T> values) {
  ESPALIER_CHECK(std::ssize(values) <= left_, "{} entries of {}, {} left", values.size(), name_, left_);
  left_ -= std::ssize(values);
  while (!values.empty()) {
    const auto count = std::min<std::size_t>(values.size(), kBytesAtOnce / width_);
    piece_.resize(count * width_);
    take(piece_.data(), std::ssize(piece_));
    convert(values.first(count));
    values = values.subspan(count);
  }
  if (left_ == 0) check_end();
}

void NpyArray::skip(std::int64_t entries) {
  left_ -= entries;
  bytes_->skip(entries * width_);
}

// An archive knows at its end whether all before was right.
void NpyArray::check_end() {
  char beyond = 0;
  if (bytes_->read(&beyond, 1) != 0) input_error("{}: goes on after its end", name_);
}

void NpyArray::read(std::span<std::int64_t> values) {
  if (kind_ == 'f')
    input_error("{}: holds numbers of {} bytes with a fraction, not whole ones", name_, width_);
  read_as(values);
  if (kind_ != 'u' || width_ < 8) return;
  const auto wrapped = std::ranges::find_if(values, [](std::int64_t value) { return value < 0; });
  if (wrapped != values.end())
    input_error("{}: has the number {}; numbers up to 2^63 - 1 can be read", name_,
                static_cast<std::uint64_t>(*wrapped));
}

namespace {
// A letter of four bytes as UTF-8 (RFC 3629).
void append_letter(char32_t letter, std::string& text) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  const auto rest = [&](int bits) { put(0x80 | (letter >> bits & 0x3f)); };
  if (letter < 0x80) return put(letter);
  if (letter < 0x800) return put(0xc0 | letter >> 6), rest(0);
  if (letter < 0x10000) return put(0xe0 | letter >> 12), rest(6), rest(0);
  put(0xf0 | letter >> 18), rest(12), rest(6), rest(0);
}
}  // namespace

void NpyArray::read(std::span<std::string> texts) {
  left_ -= std::ssize(texts);
  piece_.resize(width_);
  for (auto& text : texts) {
    take(piece_.data(), width_);
    text.clear();
    if (kind_ == 'S') {
      text.assign(piece_.data(), static_cast<std::size_t>(width_));
    } else {
      std::vector<std::uint32_t> letters(static_cast<std::size_t>(width_ / 4));
      convert_from<std::uint32_t, std::uint32_t>(piece_.data(), swapped_, letters);
      for (const auto letter : letters) append_letter(letter, text);
    }
    text.erase(text.find_last_not_of('\0') + 1);
  }
  if (left_ == 0) check_end();
}

void NpyArray::read_row(std::span<double> row) {
  if (!by_columns_ || columns() == 1) return read_as(row);
  if (next_row_ == 0) {
    by_column_.resize(left_ * width_);
    take(by_column_.data(), std::ssize(by_column_));
    left_ = 0;
    check_end();
  }
  piece_.resize(columns() * width_);
  for (std::int64_t column = 0; column < columns(); ++column)
    std::memcpy(&piece_[column * width_], &by_column_[(column * shape_[0] + next_row_) * width_],
                static_cast<std::size_t>(width_));
  convert(row);
  if (++next_row_ == shape_[0]) by_column_ = {};
}

// ---- files ----

void ByteStream::skip(std::int64_t count) {
  Buffer<char> bytes(std::min(count, kBytesAtOnce));
  for (std::int64_t got = 1; count > 0 && got > 0; count -= got)
    got = read(bytes.data(), std::min(count, kBytesAtOnce));
}

namespace {

class PlainFile : public ByteStream {
 public:
  explicit PlainFile(const std::string& path) : file_(RangedFile::open(path)) {}
  std::int64_t size() const override { return file_.size(); }
  std::int64_t read(char* to, std::int64_t count) override {
    if (at_ == end_) fill();
    const auto got = std::min(count, end_ - at_);
    std::memcpy(to, ahead_.data() + at_, static_cast<std::size_t>(got));
    at_ += got;
    return got;
  }
  void skip(std::int64_t count) override {
    const auto held = std::min(count, end_ - at_);
    at_ += held;
    place_ += count - held;
  }

 private:
  void fill() {
    ahead_.resize(kAhead);
    end_ = file_.read(place_, ahead_.data(), kAhead);
    place_ += end_;
    at_ = 0;
    note_movement();
  }
  static constexpr std::int64_t kAhead = 1 << 20;

  RangedFile file_;
  std::int64_t place_ = 0;  // of the file: what lies behind `ahead_`
  Buffer<char> ahead_;
  std::int64_t at_ = 0, end_ = 0;  // what is unread of it
};

}  // namespace

std::unique_ptr<NpyArray> open_npy(const std::string& path, bool texts) {
  check_is_input(path);
  return std::make_unique<NpyArray>(std::make_unique<PlainFile>(path), path, texts);
}

// ---- .npz ----

namespace {

// An archive that is open.
using Zip = std::unique_ptr<zip_t, decltype(&zip_discard)>;

Zip open_zip(const std::string& path) {
  check_is_input(path);
  int code = 0;
  Zip zip(zip_open(path.c_str(), ZIP_RDONLY, &code), zip_discard);
  if (zip) return zip;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  input_error("cannot open {} as an archive of arrays (.npz): {}", path, reason);
}

class ZipMember : public ByteStream {
 public:
  ZipMember(const std::string& path, const std::string& member, const std::string& name)
      : zip_(open_zip(path)), name_(name) {
    zip_stat_t found;
    zip_stat_init(&found);
    if (zip_stat(zip_.get(), member.c_str(), 0, &found) != 0 || (found.valid & ZIP_STAT_SIZE) == 0)
      input_error("{}: is not in the archive", name);
    size_ = static_cast<std::int64_t>(found.size);
    file_ = zip_fopen(zip_.get(), member.c_str(), 0);
    if (file_ == nullptr) input_error("{}: cannot be read: {}", name, zip_strerror(zip_.get()));
  }
  ~ZipMember() override { zip_fclose(file_); }
  std::int64_t size() const override { return size_; }
  std::int64_t read(char* to, std::int64_t count) override {
    const auto got = zip_fread(file_, to, static_cast<zip_uint64_t>(count));
    if (got < 0)
      input_error("{}: the archive is damaged ({}); fetch it again", name_, zip_file_strerror(file_));
    note_movement();
    return got;
  }

 private:
  Zip zip_;
  std::string name_;
  std::int64_t size_ = 0;
  zip_file_t* file_ = nullptr;
};

}  // namespace

NpzFile::NpzFile(const std::string& path) : path_(path) {
  const auto zip = open_zip(path);
  const auto count = zip_get_num_entries(zip.get(), 0);
  const std::string ending = ".npy";
  for (zip_int64_t k = 0; k < count; ++k) {
    const char* name = zip_get_name(zip.get(), static_cast<zip_uint64_t>(k), 0);
    const std::string member = name == nullptr ? "" : name;
    if (!member.ends_with(ending)) input_error("{}: holds {}, which is no array (.npy)", path, member);
    names_.push_back(member.substr(0, member.size() - ending.size()));
  }
}

bool NpzFile::has(const std::string& name) const {
  return std::ranges::find(names_, name) != names_.end();
}

std::unique_ptr<NpyArray> NpzFile::open(const std::string& name, bool texts) const {
  const auto place = fmt::format("{}: {}", path_, name);
  return std::make_unique<NpyArray>(std::make_unique<ZipMember>(path_, name + ".npy", place), place, texts);
}

}  // namespace espalier
