#include "espalier/feature/disk_rows.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/parallel_reads.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"

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

// ---- of a file of this rank ----

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
  parts_.push_back({0, rows_, 0, form_, std::move(own.name), 0});
  chunk_rows_ = rows_of_chunk(rows_, form_.row_bytes());
}

DiskRows::Chunk DiskRows::chunk_of(std::int64_t number) const {
  const auto& part = *std::ranges::upper_bound(parts_, number, {}, &Part::end);
  const auto begin = part.begin + (number - part.begin) / chunk_rows_ * chunk_rows_;
  return {&part, begin, std::min(part.end, begin + chunk_rows_)};
}

std::int64_t DiskRows::number_of(const Chunk& chunk) const {
  return chunk.part->first_chunk + (chunk.begin - chunk.part->begin) / chunk_rows_;
}

// The rows numbers[k] on their way to row k of `to`, for k in `order`, which is by number.
class DiskRows::Reading {
 public:
  Reading(const DiskRows& disk, std::span<const std::int64_t> numbers, std::span<const std::int64_t> order,
          std::byte* to)
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

  // Another read begins where a chunk that is wanted does not lie behind the one before, or where
  // there are enough.
  void find_begins() {
    Chunk last = {nullptr, 0, 0};
    std::int64_t bytes = 0;
    for (std::int64_t k = 0; k < std::ssize(order_); ++k) {
      const auto number = numbers_[order_[k]];
      if (last.part != nullptr && number < last.end) continue;
      const auto chunk = disk_.chunk_of(number);
      const auto more = (chunk.end - chunk.begin) * chunk.part->form.row_bytes();
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
    piece.bytes.resize((piece.end - piece.begin) * part.form.row_bytes());
    file.begin(part.offset + (piece.begin - part.begin) * part.form.row_bytes(), piece.bytes.data(),
               std::ssize(piece.bytes));
  }

  // A piece that was read, checked, to the places that want it; or what is wrong with it.
  const char* take(Piece& piece) const {
    const auto* const what = check_chunks(piece);
    if (what == nullptr) take_rows(piece);
    return what;
  }

  const std::byte* row(const Piece& piece, std::int64_t number) const {
    return piece.bytes.data() + (number - piece.begin) * piece.part->form.row_bytes();
  }

  // What is wrong with the chunks, or null; then the first of them is at `begin`.
  const char* check_chunks(Piece& piece) const {
    if (!disk_.verify_) return nullptr;
    const auto& part = *piece.part;
    for (auto first = piece.begin; first < piece.end; first += disk_.chunk_rows_) {
      const auto rows = std::min(disk_.chunk_rows_, piece.end - first);
      if (digest_rows(part.form, row(piece, first), rows, first - part.begin) ==
          disk_.digests_[disk_.number_of({piece.part, first, first + rows})])
        continue;
      piece.begin = first;
      return "does not hold what it held before";
    }
    return nullptr;
  }

  // Rows of the chunks, to the places that want them.
  void take_rows(const Piece& piece) const {
    const auto &form = disk_.form_, &of_part = piece.part->form;
    const auto row_bytes = form.row_bytes();
    Matrix<float> numbers(1, form.width);
    for (const auto place : piece.wanted) {
      const auto* const from = row(piece, numbers_[place]);
      auto* const to = to_ + place * row_bytes;
      if (disk_.norm_ == "none" && of_part.kind == form.kind) {
        std::copy_n(from, row_bytes, to);
        continue;
      }
      of_part.kind->read(of_part, from, numbers.row(0));
      espalier::normalize(disk_.norm_, disk_.standard_, *form.kind, numbers);
      form.kind->write(form, numbers.row(0), to);
    }
  }

  const DiskRows& disk_;
  std::span<const std::int64_t> numbers_, order_;
  std::byte* to_;
  std::vector<std::int64_t> begins_;    // places in order_ where another read begins, and its end
  std::atomic<std::int64_t> next_ = 0;  // the first read that nobody has taken
};

std::int64_t DiskRows::read(const Cpu& cpu, std::span<const std::int64_t> numbers,
                            std::span<std::int64_t> places, std::byte* to) const {
  std::vector<std::int64_t> of_file;  // the numbers that rows have there
  if (owners_) numbers = of_file = owners_->places_of(part_, numbers);
  std::ranges::sort(places, {}, [&](std::int64_t k) { return std::pair(numbers[k], k); });
  Reading reading(*this, numbers, places, to);
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

void DiskRows::normalize(const Communicator& comm, const std::string& norm, Standardization& standard) {
  if (norm == "standard" && standard.mean.empty()) {
    constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
    const auto mine = even_range(rows_, comm.size(), comm.rank());
    const auto at_once = std::max<std::int64_t>(1, kBytesAtOnce / std::max<std::int64_t>(1, 4 * form_.width));
    const auto pieces = [&](const auto& use) {
      std::vector<std::int64_t> numbers, places;
      for (auto begin = mine.begin; begin < mine.end; begin += at_once) {
        numbers.resize(static_cast<std::size_t>(std::min(at_once, mine.end - begin)));
        places.resize(numbers.size());
        std::iota(numbers.begin(), numbers.end(), begin);
        std::iota(places.begin(), places.end(), std::int64_t{0});
        StoredRows<Cpu> rows(form_, std::ssize(numbers));
        read(Cpu{1}, numbers, places, rows.data);
        each_numbers(rows, false, use);
      }
    };
    standard = measure_columns(pieces, form_.width, comm, rows_);
  }
  norm_ = norm;
  standard_ = standard;
}

double DiskRows::memory_bytes(double rows, double row_bytes) {
  const auto of_chunk = rows_of_chunk(static_cast<std::int64_t>(rows), static_cast<std::int64_t>(row_bytes));
  return 8 * rows / static_cast<double>(of_chunk);
}

}  // namespace espalier
