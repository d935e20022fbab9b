#include "edge_text.hpp"

#include <charconv>
#include <sstream>
#include <vector>

#include "espalier/base/text.hpp"

namespace espalier {

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
