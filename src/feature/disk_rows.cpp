#include "espalier/feature/disk_rows.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "espalier/base/buffer.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/parallel_reads.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/file/content_digest.hpp"

namespace espalier {

namespace {

// A chunk is a page or more, so that the disk has no use for less, and digests fit in 128 MiB.
constexpr std::int64_t kPage = 4096, kMostChunks = std::int64_t{1} << 24;

// Chunks that lie one behind the other are one read, up to so many bytes of them.
constexpr std::int64_t kBytesOfRead = 32 << 10;

}  // namespace

std::int64_t DiskRows::rows_of_chunk(std::int64_t rows, std::int64_t row_bytes) {
  const auto per_page = std::max<std::int64_t>(1, kPage / std::max<std::int64_t>(1, row_bytes));
  return std::max(per_page, rows / kMostChunks);
}

DiskRows::DiskRows(OwnFile own, std::optional<Ownership> owners, int part)
    : of_(std::move(own.of)),
      file_(std::move(own.file)),
      verify_(true),
      by_place_(!owners),
      rows_(own.rows),
      form_(std::move(own.form)),
      owners_(std::move(owners)),
      part_(part),
      digests_(std::move(own.digests)) {
  std::visit(
      [&]<class T>(const Matrix<T>& none) {
        width_ = none.columns;
        parts_.push_back({0, rows_, 0, sizeof(T), std::move(own.name), 0});
      },
      form_);
  chunk_rows_ = rows_of_chunk(rows_, parts_[0].row_bytes(width_));
}

DiskRows::Chunk DiskRows::chunk_of(std::int64_t number) const {
  const auto& part = *std::ranges::upper_bound(parts_, number, {}, &Part::end);
  const auto begin = part.begin + (number - part.begin) / chunk_rows_ * chunk_rows_;
  return {&part, begin, std::min(part.end, begin + chunk_rows_)};
}

std::int64_t DiskRows::number_of(const Chunk& chunk) const {
  return chunk.part->first_chunk + (chunk.begin - chunk.part->begin) / chunk_rows_;
}

namespace {

template <class T, class S>
T as_kept(S value) {
  if constexpr (std::is_same_v<T, S>)
    return value;
  else if constexpr (std::is_same_v<T, float>)
    return to_float(value);
  else
    return to_half(value);
}

}  // namespace

// The rows numbers[k] on their way to to(k, :), for k in `order`, which is by number. T: theirs.
template <class T>
class DiskRows::Reading {
 public:
  Reading(const DiskRows& disk, std::span<const std::int64_t> numbers, std::span<const std::int64_t> order,
          MatrixView<T> to)
      : disk_(disk), numbers_(numbers), order_(order), to_(to) {
    find_begins();
  }

  std::int64_t reads() const { return std::ssize(begins_) - 1; }
  /// No thread takes another read.
  void stop() { next_ = reads(); }

  /// One thread's share of the reads, some of which are under way while those before are checked
  /// and copied. Null, or what is wrong, in the chunk at `where`.
  const char* read_share(std::int64_t most_under_way, std::int64_t& bytes, std::int64_t& where) {
    // Before the reads, which write there.
    std::vector<Piece> pieces(static_cast<std::size_t>(most_under_way));
    ParallelReads file(*disk_.file_);
    const char* what = nullptr;
    for (std::int64_t begun = 0, ended = 0; what == nullptr; ++ended) {
      for (; begun - ended < most_under_way; ++begun) {
        const auto read = next_.fetch_add(1);
        if (read >= reads()) break;
        auto& piece = pieces[begun % most_under_way];
        begin(piece, read, file);
        bytes += std::ssize(piece.bytes);
      }
      if (ended == begun) break;
      auto& piece = pieces[ended % most_under_way];
      where = piece.begin;
      what = file.finish() == std::ssize(piece.bytes) ? take(piece) : "ends too early";
      where = piece.begin;
    }
    return what;
  }

 private:
  // Chunks that lie one behind the other, while they are read: rows [begin, end), with those whose
  // places in the list are `wanted`.
  struct Piece {
    const Part* part;
    std::int64_t begin, end;
    std::span<const std::int64_t> wanted;
    Buffer<std::byte> bytes;
  };

  std::int64_t row_bytes(const Part& part) const { return part.row_bytes(disk_.width_); }

  // Another read begins where a chunk that is wanted does not lie behind the one before, or where
  // there are enough.
  void find_begins() {
    Chunk last = {nullptr, 0, 0};
    std::int64_t bytes = 0;
    for (std::int64_t k = 0; k < std::ssize(order_); ++k) {
      const auto number = numbers_[order_[k]];
      if (last.part != nullptr && number < last.end) continue;
      const auto chunk = disk_.chunk_of(number);
      const auto more = (chunk.end - chunk.begin) * row_bytes(*chunk.part);
      bytes += more;
      if (chunk.part != last.part || chunk.begin != last.end || bytes > kBytesOfRead) {
        begins_.push_back(k);
        bytes = more;
      }
      last = chunk;
    }
    begins_.push_back(std::ssize(order_));
  }

  void begin(Piece& piece, std::int64_t read, ParallelReads& file) const {
    piece.wanted = order_.subspan(begins_[read], begins_[read + 1] - begins_[read]);
    const auto first = disk_.chunk_of(numbers_[piece.wanted.front()]);
    const auto& part = *first.part;
    piece.part = first.part;
    piece.begin = first.begin;
    piece.end = disk_.chunk_of(numbers_[piece.wanted.back()]).end;
    piece.bytes.resize((piece.end - piece.begin) * row_bytes(part));
    file.begin(part.offset + (piece.begin - part.begin) * row_bytes(part), piece.bytes.data(),
               std::ssize(piece.bytes));
  }

  // A piece that was read, checked, to the places that want it; or what is wrong with it. The only
  // words are those of quantised rows.
  const char* take(Piece& piece) const {
    const auto as = [&]<class S>(S) {
      const auto* const what = check_chunks<S>(piece);
      if (what == nullptr) take_rows<S>(piece);
      return what;
    };
    if constexpr (std::is_same_v<T, QuantisedWord>)
      return as(QuantisedWord{});
    else
      return piece.part->number_bytes == 2 ? as(Half{}) : as(float{});
  }

  // What is wrong with the chunks, or null; then the first of them is at `begin`.
  template <class S>
  const char* check_chunks(Piece& piece) const {
    if (!disk_.verify_) return nullptr;
    const auto first = piece.begin, width = disk_.width_;
    const auto* values = reinterpret_cast<const S*>(piece.bytes.data());
    for (auto row = first; row < piece.end; row += disk_.chunk_rows_) {
      const auto rows = std::min(disk_.chunk_rows_, piece.end - row);
      const std::span<const S> chunk(values + (row - first) * width, static_cast<std::size_t>(rows * width));
      if (content_digest(chunk, (row - piece.part->begin) * width) ==
          disk_.digests_[disk_.number_of({piece.part, row, row + rows})])
        continue;
      piece.begin = row;
      return "does not hold what it held before";
    }
    return nullptr;
  }

  // Rows of the chunks, to the places that want them.
  template <class S>
  void take_rows(const Piece& piece) const {
    const auto& wanted = piece.wanted;
    const auto width = disk_.width_;
    const auto copy = [&](std::int64_t place, T* row) {
      const auto* from =
          reinterpret_cast<const S*>(piece.bytes.data()) + (numbers_[place] - piece.begin) * width;
      std::transform(from, from + width, row, as_kept<T, S>);
    };
    if (disk_.norm_ == "none") {
      for (const auto place : wanted) copy(place, to_.row(place));
      return;
    }
    if constexpr (!std::is_same_v<T, QuantisedWord>) {
      Matrix<T> rows(std::ssize(wanted), width);
      for (std::int64_t k = 0; k < rows.rows; ++k) copy(wanted[k], rows.row(k));
      StoredRows<Cpu> normalized(std::move(rows));
      if (disk_.norm_ == "row") normalize_rows(normalized);
      if (disk_.norm_ == "standard") standardize(normalized, disk_.standard_);
      const auto& done = std::get<Matrix<T>>(normalized);
      for (std::int64_t k = 0; k < done.rows; ++k) std::copy_n(done.row(k), width, to_.row(wanted[k]));
    }
  }

  const DiskRows& disk_;
  std::span<const std::int64_t> numbers_, order_;
  MatrixView<T> to_;
  std::vector<std::int64_t> begins_;    // places in order_ where another read begins, and its end
  std::atomic<std::int64_t> next_ = 0;  // the first read that nobody has taken
};

template <class T>
std::int64_t DiskRows::read(const Cpu& cpu, std::span<const std::int64_t> numbers,
                            std::span<std::int64_t> places, MatrixView<T> to) const {
  std::vector<std::int64_t> of_file;  // the numbers that rows have there
  if (owners_) numbers = of_file = owners_->places_of(part_, numbers);
  std::ranges::sort(places, {}, [&](std::int64_t k) { return std::pair(numbers[k], k); });
  Reading<T> reading(*this, numbers, places, to);
  // A short list is shared by all threads, too.
  const auto under_way = std::clamp<std::int64_t>((reading.reads() + cpu.threads - 1) / cpu.threads, 1,
                                                  ParallelReads::kMostUnderWay);
  std::atomic<const char*> wrong = nullptr;
  std::atomic<std::int64_t> where = 0;
  std::int64_t bytes = 0;
#pragma omp parallel num_threads(cpu.threads) reduction(+ : bytes)
  {
    const char* what = "cannot be read";
    std::int64_t at = 0;
    try {
      what = reading.read_share(under_way, bytes, at);
    } catch (const std::exception&) {  // of several threads: said below
    }
    if (what != nullptr) {
      reading.stop();
      where = at;
      wrong = what;
    }
  }
  if (wrong == nullptr) return bytes;
  const auto chunk = chunk_of(where);
  fail_job(ExitCode::kInput,
           fmt::format("{}: {} {} in rows {} to {}; its disk is failing, or another program has "
                       "changed it",
                       of_, chunk.part->name, wrong.load(), chunk.begin - chunk.part->begin,
                       chunk.end - chunk.part->begin - 1));
}

template std::int64_t DiskRows::read(const Cpu&, std::span<const std::int64_t>, std::span<std::int64_t>,
                                     MatrixView<float>) const;
template std::int64_t DiskRows::read(const Cpu&, std::span<const std::int64_t>, std::span<std::int64_t>,
                                     MatrixView<Half>) const;
template std::int64_t DiskRows::read(const Cpu&, std::span<const std::int64_t>, std::span<std::int64_t>,
                                     MatrixView<QuantisedWord>) const;

void DiskRows::normalize(const Communicator& comm, const std::string& norm, Standardization& standard) {
  if (norm == "standard" && standard.mean.empty()) {
    constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
    const auto mine = even_range(rows_, comm.size(), comm.rank());
    const auto at_once = std::max<std::int64_t>(1, kBytesAtOnce / std::max<std::int64_t>(1, 4 * width_));
    const auto each_piece = [&](const PieceVisit& visit) {
      std::vector<std::int64_t> numbers, places;
      for (auto begin = mine.begin; begin < mine.end; begin += at_once) {
        numbers.resize(static_cast<std::size_t>(std::min(at_once, mine.end - begin)));
        places.resize(numbers.size());
        std::iota(numbers.begin(), numbers.end(), begin);
        std::iota(places.begin(), places.end(), std::int64_t{0});
        const auto piece = [&]<class T>(T) {
          Matrix<T> rows(std::ssize(numbers), width_);
          read<T>(Cpu{1}, numbers, places, rows);
          visit(StoredRows<Cpu>(std::move(rows)));
        };
        std::holds_alternative<Matrix<Half>>(form_) ? piece(Half{}) : piece(float{});
      }
    };
    standard = measure_columns(each_piece, width_, comm, rows_);
  }
  norm_ = norm;
  standard_ = standard;
}

double DiskRows::memory_bytes(double rows, double row_bytes) {
  const auto of_chunk = rows_of_chunk(static_cast<std::int64_t>(rows), static_cast<std::int64_t>(row_bytes));
  return 8 * rows / static_cast<double>(of_chunk);
}

// ---- as the rows that a rank has ----

template <class Space>
RowStorageOn<Space>::RowStorageOn(Ownership owners, int part,
                                  std::shared_ptr<const DiskRows> disk) requires std::is_same_v<Space, Cpu>
    : reach_(std::move(owners)), part_(part), rows_(disk->form()), disk_(std::move(disk)) {}

template <class Space>
std::int64_t RowStorageOn<Space>::number_on_disk(std::int64_t place) const {
  return disk_->by_place() ? place : reach_.vertex(part_, place);
}

template <class Space>
void RowStorageOn<Space>::begin_read(const Cpu& cpu, std::span<const std::int64_t> places, std::byte* to,
                                     RowCache* cache,
                                     DiskRead& read) const requires std::is_same_v<Space, Cpu> {
  read.wait();
  read.cache_ = cache;
  read.to_ = to;
  read.waited_ = 0;
  read.numbers_.clear();
  for (const auto place : places) read.numbers_.push_back(number_on_disk(place));
  if (cache != nullptr) {
    cache->begin_read(cpu, read.numbers_, read.missed_, to);
  } else {
    read.missed_.resize(places.size());
    std::iota(read.missed_.begin(), read.missed_.end(), std::int64_t{0});
  }
  read.reading_ = std::async(std::launch::async, [disk = disk_, cpu, &read, to,
                                                  missed = read.missed_]() mutable {
    const double begin = now();
    read.bytes_ = std::visit(
        [&]<class T>(const Matrix<T>& none) {
          const auto rows = std::ssize(read.numbers_);
          return disk->read<T>(cpu, read.numbers_, missed, {rows, none.columns, reinterpret_cast<T*>(to)});
        },
        disk->form());
    read.seconds_ = now() - begin;
  });
}

void DiskRead::wait() {
  if (!reading_.valid()) return;
  const double begin = now();
  reading_.get();
  waited_ += now() - begin;
}

DiskCounts DiskRead::finish(const Cpu& cpu) {
  wait();
  if (cache_ != nullptr) cache_->end_read(cpu, numbers_, missed_, to_);
  return {std::ssize(numbers_), std::ssize(missed_), bytes_, seconds_, waited_};
}

template RowStorage::RowStorageOn(Ownership, int, std::shared_ptr<const DiskRows>);
template std::int64_t RowStorage::number_on_disk(std::int64_t) const;
template void RowStorage::begin_read(const Cpu&, std::span<const std::int64_t>, std::byte*, RowCache*,
                                     DiskRead&) const;

}  // namespace espalier
