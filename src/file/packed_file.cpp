// Both packings may be several, one after the other, in one file: `cat a.gz b.gz > c.gz`.
#include "espalier/file/packed_file.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/file/input_files.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 18;  // bytes of the file at a time

constexpr const char* kCutOff = "it ends too early";

// What is packed, piece by piece.
class Piece {
 public:
  explicit Piece(RangedFile file, std::int64_t begin = 0)
      : file_(std::move(file)), bytes_(kPiece), place_(begin) {
    fill();
  }
  std::string_view left() const { return {bytes_.data() + begin_, static_cast<std::size_t>(end_ - begin_)}; }
  void take(std::size_t count) { begin_ += static_cast<std::int64_t>(count); }
  /// Reads on where nothing is left; false at the end of the file.
  bool fill() {
    if (begin_ < end_) return true;
    end_ = file_.read(place_, bytes_.data(), kPiece);
    place_ += end_;
    begin_ = 0;
    note_movement();
    return end_ > 0;
  }

 private:
  RangedFile file_;
  Buffer<char> bytes_;
  std::int64_t place_, begin_ = 0, end_ = 0;
};

class Plain : public PackedFile::Unpacker {
 public:
  explicit Plain(Piece piece) : piece_(std::move(piece)) {}
  std::int64_t read(char* to, std::int64_t count) override {
    if (!piece_.fill()) return 0;
    const auto part = piece_.left().substr(0, static_cast<std::size_t>(count));
    std::memcpy(to, part.data(), part.size());
    piece_.take(part.size());
    return std::ssize(part);
  }

 private:
  Piece piece_;
};

class Gzip : public PackedFile::Unpacker {
 public:
  explicit Gzip(Piece piece) : piece_(std::move(piece)) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  std::int64_t read(char* to, std::int64_t count) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(count);
    while (static_cast<std::int64_t>(stream_.avail_out) == count && begin_member()) {
      if (!piece_.fill()) throw DamagedPacking(kCutOff);
      const auto in = piece_.left();
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      piece_.take(in.size() - stream_.avail_in);
      if (code == Z_STREAM_END)
        within_ = false;
      else if (code != Z_OK && code != Z_BUF_ERROR)
        throw DamagedPacking(stream_.msg != nullptr ? stream_.msg : "it is no gzip");
    }
    return count - stream_.avail_out;
  }

 private:
  // Goes on with the next part behind one that has ended; false where the file ends, too. Zeros may
  // fill it up.
  bool begin_member() {
    if (within_) return true;
    do {
      const auto in = piece_.left();
      piece_.take(std::min(in.find_first_not_of('\0'), in.size()));
    } while (piece_.left().empty() && piece_.fill());
    if (piece_.left().empty()) return false;
    if (inflateReset(&stream_) != Z_OK) throw std::bad_alloc();
    return within_ = true;
  }

  Piece piece_;
  z_stream stream_ = {};
  bool within_ = true;  // a part that has not ended
};

class Zstd : public PackedFile::Unpacker {
 public:
  explicit Zstd(Piece piece) : piece_(std::move(piece)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  std::int64_t read(char* to, std::int64_t count) override {
    ZSTD_outBuffer out = {to, static_cast<std::size_t>(count), 0};
    while (out.pos == 0) {
      const bool more = piece_.fill();
      if (!more && ended_) return 0;
      const auto left = piece_.left();
      ZSTD_inBuffer in = {left.data(), left.size(), 0};
      const auto code = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(code)) throw DamagedPacking(ZSTD_getErrorName(code));
      piece_.take(in.pos);
      ended_ = code == 0;
      if (!more && !ended_ && out.pos == 0) throw DamagedPacking(kCutOff);
    }
    return static_cast<std::int64_t>(out.pos);
  }

 private:
  Piece piece_;
  ZSTD_DStream* stream_;
  bool ended_ = false;  // a frame that is whole, and no other has begun
};

bool is_gzip(std::string_view start) {
  return start.starts_with("\x1f\x8b");
}

// A frame, or one of those that are passed over.
bool is_zstd(std::string_view start) {
  return start.starts_with("\x28\xb5\x2f\xfd") ||
         (start.size() >= 4 && (start[0] & 0xf0) == 0x50 && start.substr(1, 3) == "\x2a\x4d\x18");
}

std::unique_ptr<PackedFile::Unpacker> open(const std::string& path) {
  check_is_input(path);
  Piece piece(RangedFile::open(path));
  const auto start = piece.left();
  if (is_gzip(start)) return std::make_unique<Gzip>(std::move(piece));
  if (is_zstd(start)) return std::make_unique<Zstd>(std::move(piece));
  return std::make_unique<Plain>(std::move(piece));
}

}  // namespace

PackedFile::PackedFile(const std::string& path) : bytes_(open(path)) {}
PackedFile::PackedFile(const std::string& path, std::int64_t begin)
    : bytes_(std::make_unique<Plain>(Piece(RangedFile::open(path), begin))) {}
PackedFile::~PackedFile() = default;

std::int64_t PackedFile::plain_size(const std::string& path) {
  check_is_input(path);
  auto file = RangedFile::open(path);
  const auto size = file.size();
  const Piece piece(std::move(file));
  return is_gzip(piece.left()) || is_zstd(piece.left()) ? -1 : size;
}

std::int64_t PackedFile::read(char* to, std::int64_t count) {
  return bytes_->read(to, count);
}

}  // namespace espalier
