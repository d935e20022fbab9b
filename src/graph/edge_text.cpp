#include "edge_text.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "espalier/base/text.hpp"

namespace espalier {

namespace {

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

const char* pass_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

// Behind what stands between two fields; null where there is nothing between them.
const char* pass_separator(const char* at, const char* end) {
  const auto* behind = pass_blanks(at, end);
  if (behind < end && *behind == ',') behind = pass_blanks(behind + 1, end);
  return behind == at ? nullptr : behind;
}

// Reads a number; null where there is none.
template <class Number>
const char* read_number(const char* at, const char* end, Number& number) {
  const auto [behind, error] = std::from_chars(at, end, number);
  return error == std::errc() ? behind : nullptr;
}

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  const auto* end = text.data() + text.size();
  const auto* at = pass_blanks(text.data(), end);
  while (at != nullptr) {
    const auto* begin = at;
    while (at < end && !is_blank(*at) && *at != ',') ++at;
    fields.emplace_back(begin, at - begin);
    if (pass_blanks(at, end) == end) break;
    at = pass_separator(at, end);
  }
  return fields;
}

template <class Number>
void check_field(const LineReader& lines, std::string_view text, const char* what, const std::string& hint) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (behind == end && error == std::errc::result_out_of_range)
    lines.fail("'{}' is out of range", in_short(text));
  if (behind != end || error != std::errc()) lines.fail("{}{}", why_no_number(text, what), hint);
}

}  // namespace

bool PairReader::next() {
  while (lines_.next()) {
    const auto text = lines_.text();
    const auto* end = text.data() + text.size();
    const auto* at = pass_blanks(text.data(), end);
    if (at == end || form_.comments.find(*at) != std::string::npos) continue;
    if (!read(at, end)) refuse();
    return true;
  }
  return false;
}

bool PairReader::read(const char* at, const char* end) {
  const auto read_field = [&](PairField field) {
    if (field == PairField::kValue) return read_number(at, end, value_);
    return read_number(at, end,
                       field == PairField::kFirst    ? first_
                       : field == PairField::kSecond ? second_
                                                     : time_);
  };
  at = read_field(form_.fields[0]);
  for (std::size_t k = 1; k < form_.fields.size() && at != nullptr; ++k) {
    at = pass_separator(at, end);
    if (at != nullptr) at = read_field(form_.fields[k]);
  }
  return at != nullptr && pass_blanks(at, end) == end;
}

void PairReader::refuse() const {
  const auto fields = fields_of(lines_.text());
  const auto wanted = std::ssize(form_.fields);
  for (std::ptrdiff_t k = 0; k < std::ssize(fields) && k < wanted; ++k)
    form_.fields[k] == PairField::kValue
        ? check_field<double>(lines_, fields[k], "a number", form_.no_number_hint)
        : check_field<std::int64_t>(lines_, fields[k], "a whole number", form_.no_number_hint);
  lines_.fail("has {}, expected {}: {}{}", counted(std::ssize(fields), "field"), wanted, form_.names,
              std::ssize(fields) > wanted ? form_.hint : "");
}

// ---- lines ----

bool EdgeLines::has(PairField field) const {
  return std::ranges::find(options_.form.fields, field) != options_.form.fields.end();
}

float EdgeLines::weight_of(const PairReader& line, EdgePieces& pieces, const char* hint) {
  const auto fail = [&](const std::string& words) { line.lines().fail("{}{}", words, hint); };
  return stored_weight(line.value(), fail, pieces.vanished());
}

void EdgeLines::pass_head(LineReader& lines) const {
  while (lines.line() < head_lines_ && lines.next()) continue;
}

std::int64_t EdgeLines::read_lines(LineReader& lines,
                                   const std::function<void(const EdgePiece&)>& use) const {
  PairReader pairs(lines, options_.form);
  EdgePieces pieces(weighted(), use, has(PairField::kTime));
  std::int64_t found = 0;
  for (; pairs.next(); ++found) {
    if (found == announced_) lines.fail("one entry too many: the header announces {}", announced_);
    add(pairs, pieces);
  }
  pieces.finish();
  return found;
}

void EdgeLines::read(const std::function<void(const EdgePiece&)>& use) const {
  LineReader lines(options_.path);
  pass_head(lines);
  const auto found = read_lines(lines, use);
  if (found < announced_)
    input_error("{}: has {}, but its header announces {}; is the download complete?", options_.path,
                counted(found, "entry"), announced_);
}

void EdgeLines::read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const {
  const auto size = share.ranks > 1 ? PackedFile::plain_size(options_.path) : -1;
  if (size < 0) return EdgeSource::read_parts(share, use);
  // The edges of all parts may be for one rank.
  const auto most = std::clamp<std::int64_t>((std::int64_t{1} << 27) / share.ranks, 1 << 16, 1 << 21);
  const auto part = options_.part > 0 ? options_.part : most;
  std::int64_t found = 0;
  for (auto first = head_bytes_; first < size; first += share.ranks * part) {
    if (const auto begin = first + share.rank * part; begin < size) {
      LineReader lines(options_.path, begin, std::min(begin + part, size));
      found += read_lines(lines, use);
    }
    share.next();
  }
  if (announced_ >= 0) share.miss((share.rank == 0 ? announced_ : 0) - found);
}

std::string EdgeLines::place(std::int64_t edge) const {
  LineReader lines(options_.path);
  pass_head(lines);
  PairReader pairs(lines, options_.form);
  while (pairs.next() && (edge -= edges_of(pairs)) >= 0) continue;
  return fmt::format("{}:{}", options_.path, lines.line());
}

// ---- a list ----

namespace {

void check_id(const PairReader& pairs, std::int64_t id, const VertexCount& of, bool any_ids) {
  if (id < 0) pairs.lines().fail("vertex {} is negative; ids count from 0", id);
  if (of.count >= 0 && id >= of.count)
    pairs.lines().fail("vertex {} is out of range: {}, 0 to {}", id, of.by, of.count - 1);
  if (!any_ids && id >= kMostVertices)
    pairs.lines().fail(
        "vertex {} is beyond the {} that a graph may have; --renumber numbers those that there are", id,
        kMostVertices);
}

class EdgeText : public EdgeLines {
 public:
  explicit EdgeText(EdgeTextOptions options)
      : EdgeLines(std::move(options)), weighted_(has(PairField::kValue)) {}
  bool weighted() const override { return weighted_; }

 private:
  void add(const PairReader& line, EdgePieces& pieces) const override {
    check_id(line, line.first(), options_.sources, options_.any_ids);
    check_id(line, line.second(), options_.targets, options_.any_ids);
    pieces.add(line.first(), line.second(), weighted_ ? weight_of(line, pieces) : 1, line.time());
  }

  bool weighted_;
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options) {
  return std::make_unique<EdgeText>(std::move(options));
}

// ---- Matrix Market ----

namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream text{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

std::string in_small_letters(std::string word) {
  for (auto& letter : word)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return word;
}

// "matrix coordinate real general"
std::vector<std::string> read_kind(LineReader& lines) {
  constexpr std::string_view kMark = "%%matrixmarket";
  auto words = lines.next() ? words_of(lines.text().substr(0, 1000)) : std::vector<std::string>();
  for (auto& word : words) word = in_small_letters(word);
  if (words.size() != 5 || words[0] != kMark || words[1] != "matrix")
    input_error(
        "{}:1: a Matrix Market file begins with a line as \"%%MatrixMarket matrix coordinate real general\"; "
        "`espalier import edges` reads lists of edges",
        lines.path());
  return {words.begin() + 2, words.end()};
}

void check_kind(const LineReader& lines, const std::vector<std::string>& kind) {
  if (kind[0] != "coordinate")
    lines.fail("the format is {}; coordinate can be read: a sparse matrix, entry by entry",
               in_short(kind[0]));
  if (kind[1] != "pattern" && kind[1] != "integer" && kind[1] != "real")
    lines.fail("entries are {}; pattern, integer and real can be read, as weights are real numbers",
               in_short(kind[1]));
  if (kind[2] != "general" && kind[2] != "symmetric")
    lines.fail("the matrix is {}; general and symmetric ones can be read, as weights are not negative",
               in_short(kind[2]));
}

std::int64_t size_of(const LineReader& lines, const std::string& word) {
  std::int64_t size = -1;
  const auto* end = word.data() + word.size();
  const auto [behind, error] = std::from_chars(word.data(), end, size);
  if (behind != end || error == std::errc::invalid_argument)
    lines.fail("{}", why_no_number(word, "a whole number"));
  if (error != std::errc() || size < 0) lines.fail("'{}' is no size of a matrix", in_short(word));
  return size;
}

// ROWS, COLUMNS, ENTRIES.
std::vector<std::int64_t> read_sizes(LineReader& lines) {
  std::vector<std::string> words;
  while (lines.next()) {
    words = words_of(lines.text().substr(0, 1000));
    if (!words.empty() && words[0][0] != '%') break;
    words.clear();
  }
  if (words.size() != 3)
    input_error(
        "{}:{}: {}; expected three numbers: rows, columns, entries", lines.path(), lines.line(),
        words.empty() ? "the file ends after its comments" : "has " + counted(std::ssize(words), "field"));
  std::vector<std::int64_t> sizes;
  for (const auto& word : words) sizes.push_back(size_of(lines, word));
  return sizes;
}

PairForm form_of(bool valued) {
  using enum PairField;
  if (valued) return {"%", "row, column and value", {kFirst, kSecond, kValue}, ""};
  return {"%", "row and column", {kFirst, kSecond}, "; a pattern has no values"};
}

}  // namespace

MatrixMarket::MatrixMarket(const std::string& path, bool values, std::int64_t part)
    : EdgeLines({.path = path, .part = part}) {
  LineReader lines(path);
  const auto kind = read_kind(lines);
  check_kind(lines, kind);
  const bool valued = kind[1] != "pattern";
  options_.form = form_of(valued);
  weighted_ = valued && values;
  symmetric_ = kind[2] == "symmetric";
  const auto sizes = read_sizes(lines);
  if (sizes[0] != sizes[1])
    lines.fail("the matrix is {} x {}; that of a graph is square", sizes[0], sizes[1]);
  nodes_ = sizes[0];
  announced_ = sizes[2];
  if (nodes_ == 0) lines.fail("the graph has no vertex");
  if (nodes_ > kMostVertices) lines.fail("{} vertices are more than {}", nodes_, kMostVertices);
  head_lines_ = lines.line();
  head_bytes_ = lines.passed();
}

void MatrixMarket::add(const PairReader& line, EdgePieces& pieces) const {
  const auto check = [&](std::int64_t id, const char* what) {
    if (id < 1 || id > nodes_) line.lines().fail("{} {} is out of range: 1 to {}", what, id, nodes_);
  };
  check(line.first(), "row");
  check(line.second(), "column");
  const auto row = line.first() - 1, column = line.second() - 1;
  const float weight = weighted_ ? weight_of(line, pieces, "; --no-weights reads a pattern") : 1;
  pieces.add(column, row, weight);
  if (edges_of(line) > 1) pieces.add(row, column, weight);
}

}  // namespace espalier
