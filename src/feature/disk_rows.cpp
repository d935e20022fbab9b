#include "espalier/feature/disk_rows.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "espalier/base/buffer.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/parallel_reads.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/graph/content_digest.hpp"
#include "espalier/graph/row_range.hpp"

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

DiskRows::DiskRows(const Communicator& comm, const GraphFile& file, const InputTable& table)
    : of_("graph file " + file.path()),
      verify_(file.view().verify == Verify::kYes),
      by_place_(false),
      width_(table.width) {
  if (table.half)
    form_ = Matrix<Half>(0, width_);
  else
    form_ = Matrix<float>(0, width_);
  const auto& types = file.info().schema.types();
  std::vector<int> held;
  std::int64_t chunks = 0;
  for (int t = 0; t < std::ssize(types); ++t)
    if (table.held.holds_type(t)) rows_ += types[t].size();
  chunk_rows_ = rows_of_chunk(rows_, table.row_bytes());
  for (int t = 0; t < std::ssize(types); ++t) {
    if (!table.held.holds_type(t)) continue;
    const auto plain = file.plain_features(t);
    ESPALIER_CHECK(plain.has_value(), "features of type {} of {}, which is compressed", t, file.path());
    const auto begin = parts_.empty() ? 0 : parts_.back().end;
    parts_.push_back({begin, begin + plain->rows, plain->offset, plain->half ? 2 : 4, plain->name, chunks});
    chunks += (plain->rows + chunk_rows_ - 1) / chunk_rows_;
    held.push_back(t);
  }
  agree(comm, [&] { file_.emplace(RangedFile::open(file.path())); });
  digests_.assign(static_cast<std::size_t>(chunks), 0);
  for (std::size_t k = 0; k < parts_.size(); ++k)
    parts_[k].number_bytes == 2 ? digest_part<Half>(comm, file, held[k], parts_[k])
                                : digest_part<float>(comm, file, held[k], parts_[k]);
  comm.all_reduce(std::span(digests_), Reduction::kSum, "setup");
}

DiskRows::DiskRows(OwnFile own)
    : of_(std::move(own.of)),
      file_(std::move(own.file)),
      verify_(true),
      by_place_(true),
      rows_(own.rows),
      form_(std::move(own.form)),
      digests_(std::move(own.digests)) {
  std::visit(
      [&]<class T>(const Matrix<T>& none) {
        width_ = none.columns;
        parts_.push_back({0, rows_, 0, sizeof(T), std::move(own.name), 0});
      },
      form_);
  chunk_rows_ = rows_of_chunk(rows_, parts_[0].row_bytes(width_));
}

DiskRows::DiskRows(OwnFile own, Ownership owners, int part) : DiskRows(std::move(own)) {
  by_place_ = false;
  owners_ = std::move(owners);
  part_ = part;
}

// Each rank its even share of the chunks, some at a time.
template <class S>
void DiskRows::digest_part(const Communicator& comm, const GraphFile& file, int type, const Part& part) {
  constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
  const auto rows = part.end - part.begin, chunks = (rows + chunk_rows_ - 1) / chunk_rows_,
             at_once = std::max<std::int64_t>(1, kBytesAtOnce / (chunk_rows_ * part.row_bytes(width_)));
  const auto mine = even_range(chunks, comm.size(), comm.rank());
  const auto rounds = (chunks / comm.size() + at_once) / at_once;
  const auto vertices = file.info().schema.types()[type].begin;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto some = even_range(mine.size(), rounds, round);
    const auto first = mine.begin + some.begin, last = mine.begin + some.end;
    const auto begin = std::min(rows, first * chunk_rows_), end = std::min(rows, last * chunk_rows_);
    const auto read = file.read_features<S>(vertices + begin, vertices + end, type);
    for (auto chunk = first; chunk < last; ++chunk) {
      const auto from = chunk * chunk_rows_, to = std::min(rows, from + chunk_rows_);
      digests_[part.first_chunk + chunk] =
          content_digest(std::span<const S>(read.row(from - begin), (to - from) * width_), from * width_);
    }
  }
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

// Chunks that lie one behind the other, while they are read: rows [begin, end), with those whose
// places in the list are `wanted`.
struct DiskRows::Piece {
  const Part* part;
  std::int64_t begin, end;
  std::span<const std::int64_t> wanted;
  Buffer<std::byte> bytes;
};

// What is wrong with the chunks as they were read, or null; then the first of them is at `begin`.
template <class S>
const char* DiskRows::check_chunks(Piece& piece) const {
  if (!verify_) return nullptr;
  const auto first = piece.begin;
  const auto* values = reinterpret_cast<const S*>(piece.bytes.data());
  for (auto row = first; row < piece.end; row += chunk_rows_) {
    const auto rows = std::min(chunk_rows_, piece.end - row);
    const std::span<const S> chunk(values + (row - first) * width_, static_cast<std::size_t>(rows * width_));
    if (content_digest(chunk, (row - piece.part->begin) * width_) ==
        digests_[number_of({piece.part, row, row + rows})])
      continue;
    piece.begin = row;
    return "does not hold what it held before";
  }
  return nullptr;
}

// Rows of chunks that were read, to the places that want them.
template <class T, class S>
void DiskRows::take_rows(const Piece& piece, std::span<const std::int64_t> numbers, MatrixView<T> to) const {
  const auto wanted = piece.wanted;
  const auto copy = [&](std::int64_t place, T* row) {
    const auto* from =
        reinterpret_cast<const S*>(piece.bytes.data()) + (numbers[place] - piece.begin) * width_;
    std::transform(from, from + width_, row, as_kept<T, S>);
  };
  if (norm_ == "none") {
    for (const auto place : wanted) copy(place, to.row(place));
    return;
  }
  if constexpr (!std::is_same_v<T, PackedWord>) {
    Matrix<T> rows(std::ssize(wanted), width_);
    for (std::int64_t k = 0; k < rows.rows; ++k) copy(wanted[k], rows.row(k));
    StoredRows<Cpu> normalized(std::move(rows));
    if (norm_ == "row") normalize_rows(normalized);
    if (norm_ == "standard") standardize(normalized, standard_);
    const auto& done = std::get<Matrix<T>>(normalized);
    for (std::int64_t k = 0; k < done.rows; ++k) std::copy_n(done.row(k), width_, to.row(wanted[k]));
  }
}

// A piece that was read, checked, to the places that want it; or what is wrong with it. The only
// words are those of packed rows.
template <class T>
const char* DiskRows::take_piece(Piece& piece, std::span<const std::int64_t> numbers,
                                 MatrixView<T> to) const {
  const auto as = [&]<class S>(S) {
    const auto* const what = check_chunks<S>(piece);
    if (what == nullptr) take_rows<T, S>(piece, numbers, to);
    return what;
  };
  if constexpr (std::is_same_v<T, PackedWord>)
    return as(PackedWord{});
  else
    return piece.part->number_bytes == 2 ? as(Half{}) : as(float{});
}

// Places in `order` where another read begins: of chunks that are wanted and lie one behind the
// other, some at a time.
std::vector<std::int64_t> DiskRows::begins_of_reads(std::span<const std::int64_t> numbers,
                                                    std::span<const std::int64_t> order) const {
  std::vector<std::int64_t> begins;
  Chunk last = {nullptr, 0, 0};
  std::int64_t bytes = 0;
  for (std::int64_t k = 0; k < std::ssize(order); ++k) {
    const auto number = numbers[order[k]];
    if (last.part != nullptr && number < last.end) continue;
    const auto chunk = chunk_of(number);
    bytes += (chunk.end - chunk.begin) * chunk.part->row_bytes(width_);
    if (chunk.part != last.part || chunk.begin != last.end || bytes > kBytesOfRead) {
      begins.push_back(k);
      bytes = (chunk.end - chunk.begin) * chunk.part->row_bytes(width_);
    }
    last = chunk;
  }
  begins.push_back(std::ssize(order));
  return begins;
}

// One thread's share of the reads, some of which are under way while those before are checked and
// copied. `next`: the first that nobody has taken. Null, or what is wrong, in the chunk at `where`.
template <class T>
const char* DiskRows::read_share(std::span<const std::int64_t> numbers, std::span<const std::int64_t> order,
                                 std::span<const std::int64_t> begins, std::int64_t most_under_way,
                                 std::atomic<std::int64_t>& next, MatrixView<T> to, std::int64_t& bytes,
                                 std::int64_t& where) const {
  // Before the reads, which write there.
  std::vector<Piece> pieces(static_cast<std::size_t>(most_under_way));
  ParallelReads reads(*file_);
  const auto begin = [&](Piece& piece, std::int64_t read) {
    piece.wanted = order.subspan(begins[read], begins[read + 1] - begins[read]);
    const auto first = chunk_of(numbers[piece.wanted.front()]), last = chunk_of(numbers[piece.wanted.back()]);
    const auto& part = *first.part;
    piece.part = first.part;
    piece.begin = first.begin;
    piece.end = last.end;
    piece.bytes.resize((last.end - first.begin) * part.row_bytes(width_));
    reads.begin(part.offset + (first.begin - part.begin) * part.row_bytes(width_), piece.bytes.data(),
                std::ssize(piece.bytes));
    bytes += std::ssize(piece.bytes);
  };
  const auto end = [&](Piece& piece) -> const char* {
    if (reads.finish() != std::ssize(piece.bytes)) return "ends too early";
    return take_piece(piece, numbers, to);
  };
  const char* what = nullptr;
  for (std::int64_t begun = 0, ended = 0; what == nullptr; ++ended) {
    for (; begun - ended < most_under_way; ++begun) {
      const auto read = next.fetch_add(1);
      if (read >= std::ssize(begins) - 1) break;
      begin(pieces[begun % most_under_way], read);
    }
    if (ended == begun) break;
    auto& piece = pieces[ended % most_under_way];
    where = piece.begin;
    what = end(piece);
    where = piece.begin;
  }
  return what;
}

template <class T>
std::int64_t DiskRows::read(const Cpu& cpu, std::span<const std::int64_t> numbers,
                            std::span<std::int64_t> places, MatrixView<T> to) const {
  if (!owners_) return read_numbers(cpu, numbers, places, to);
  return read_numbers<T>(cpu, owners_->places_of(part_, numbers), places, to);
}

// By the numbers that rows have in the file.
template <class T>
std::int64_t DiskRows::read_numbers(const Cpu& cpu, std::span<const std::int64_t> numbers,
                                    std::span<std::int64_t> order, MatrixView<T> to) const {
  std::ranges::sort(order, {}, [&](std::int64_t k) { return std::pair(numbers[k], k); });
  const auto begins = begins_of_reads(numbers, order);
  const auto reads = std::ssize(begins) - 1;
  // A short list is shared by all threads, too.
  const auto under_way =
      std::clamp<std::int64_t>((reads + cpu.threads - 1) / cpu.threads, 1, ParallelReads::kMostUnderWay);
  std::atomic<const char*> wrong = nullptr;
  std::atomic<std::int64_t> where = 0, next = 0;
  std::int64_t bytes = 0;
#pragma omp parallel num_threads(cpu.threads) reduction(+ : bytes)
  {
    const char* what = "cannot be read";
    std::int64_t at = 0;
    try {
      what = read_share(numbers, order, begins, under_way, next, to, bytes, at);
    } catch (const std::exception&) {  // of several threads: said below
    }
    if (what != nullptr) {
      next = reads;
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
                                     MatrixView<PackedWord>) const;

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
