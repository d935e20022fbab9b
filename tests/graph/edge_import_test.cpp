// ranks: 1 2
// Laws: what is no edge is refused with file and line on every rank, and nothing is left behind;
// of the same edges, however they are written, packed and cut into lines, the graph file is the
// same.
#include "espalier/graph/import.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include "espalier/graph/graph_file.hpp"
#include "files.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class EdgeImport : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test_folder("edge-import");
    input_ = folder_ + "/input";
    output_ = folder_ + "/graph.h5";
  }
  // Collective. Refused with all of these words.
  template <class Import>
  void refuse(const std::string& text, const std::vector<std::string>& words, Import import) const {
    SCOPED_TRACE(text.substr(0, 100));
    write_for_all(input_, text);
    expect_refused(ExitCode::kInput, words, import);
    test_world().barrier();
    for (const auto& entry : fs::directory_iterator(folder_)) EXPECT_EQ(entry.path(), input_);
    test_world().barrier();
  }
  void refuse_edges(const std::string& text, const std::vector<std::string>& words,
                    bool weights = false) const {
    refuse(text, words, [&] { import_graph(test_world(), EdgeListFile{{input_, weights}}, output_); });
  }
  void refuse_matrix(const std::string& text, const std::vector<std::string>& words) const {
    refuse(text, words, [&] { import_graph(test_world(), MatrixMarketFile{{input_, true}}, output_); });
  }
  std::string folder_, input_, output_;
};

TEST_F(EdgeImport, LinesThatAreNoEdges) {
  using namespace std::string_literals;
  refuse_edges("", {"input: has no edge"});
  refuse_edges("# a\n%b\n\n", {"input: has no edge"});
  refuse_edges("\n\n \t\n", {"input: has no edge"});
  refuse_edges("0 1\n-1 2\n", {"input:2: vertex -1 is negative"});
  refuse_edges("0 1\r\n\r\n3 -4\r\n", {"input:3: vertex -4 is negative"});
  refuse_edges("99999999999999999999 1\n", {"input:1: '99999999999999999999' is out of range"});
  refuse_edges("1 9223372036854775808", {"input:1: '9223372036854775808' is out of range"});
  refuse_edges("1 9223372036854775807\n", {"input:1: vertex 9223372036854775807 is beyond", "--renumber"});
  refuse_edges("1.0 2\n", {"input:1: '1.0' is not a whole number in plain digits"});
  refuse_edges("# x\n1 2e3\n", {"input:2: '2e3'", "plain digits"});
  refuse_edges("+1 2\n", {"'+1'", "plus sign"});
  refuse_edges("0x1 2\n", {"'0x1' is not a whole number"});
  refuse_edges("nan 2\n", {"'nan' is not a whole number"});
  refuse_edges("source,target\n1,2\n", {"input:1: 'source'"});
  refuse_edges("1\n", {"input:1: has 1 field, expected 2: source and target"});
  refuse_edges("1 2 3\n", {"input:1: has 3 fields, expected 2", "--weights"});
  refuse_edges("1,,2\n", {"input:1: an empty field"});
  refuse_edges(",1 2\n", {"an empty field"});
  refuse_edges("1,\n", {"an empty field"});
  refuse_edges("1 2,\n", {"has 3 fields"});
  refuse_edges("1;2\n", {"'1;2' is not"});
  refuse_edges("1 2#\n", {"'2#'"});
  refuse_edges("0 1\0\n"s, {"zero byte"});
  refuse_edges("\xff\xfe\x30\0\x20\0\x31\0"s, {"input:1: ", "UTF-16"});
  refuse_edges(std::string(5000, 'a'), {fmt::format("{:a<60}...'", "")});
  refuse_edges("\"1\" 2\n", {"'\"1\"' is not"});
  refuse_edges("0 1\r1 2\r", {"input:1: has 4 fields"});
}

TEST_F(EdgeImport, WeightsThatAreNone) {
  refuse_edges("1 2\n", {"has 2 fields, expected 3: source, target and weight"}, true);
  refuse_edges("1 2 nan\n", {"weight nan is not a finite number of at least 0"}, true);
  refuse_edges("0 1 1\n0 1 inf\n", {"input:2: weight inf"}, true);
  refuse_edges("0 1 -0.5\n", {"weight -0.5"}, true);
  refuse_edges("0 1 1e39\n", {"weight 1e+39"}, true);
  refuse_edges("0 1 1e400\n", {"'1e400' is out of range"}, true);
  refuse_edges("0 1 x\n", {"'x' is not a number"}, true);
  refuse_edges("0 1 2 3\n", {"has 4 fields, expected 3"}, true);
}

TEST_F(EdgeImport, FilesThatAreNoMatrix) {
  const auto begin = [](const char* rest) { return fmt::format("%%MatrixMarket matrix {}", rest); };
  const auto good = [&](const char* rest) {
    return fmt::format("{}{}", begin("coordinate real general\n"), rest);
  };
  refuse_matrix("", {"input:1: a Matrix Market file begins with"});
  refuse_matrix("1 2\n", {"input:1: a Matrix Market file begins with", "import edges"});
  refuse_matrix("%%MatrixMarket vector coordinate real general\n", {"begins with"});
  refuse_matrix(begin("array real general\n2 2\n1\n"), {"the format is array; coordinate"});
  refuse_matrix(begin("coordinate complex general\n"), {"entries are complex"});
  refuse_matrix(begin("coordinate real skew-symmetric\n"), {"the matrix is skew-symmetric"});
  refuse_matrix(begin("coordinate real hermitian\n"), {"the matrix is hermitian"});
  refuse_matrix(good(""), {"input:1: the file ends after its comments"});
  refuse_matrix(good("% only\n"), {"input:2: the file ends"});
  refuse_matrix(good("# none\n3 3 1\n"), {"input:2: "});
  refuse_matrix(good("3 3\n"), {"input:2: has 2 fields; expected three numbers"});
  refuse_matrix(good("3 x 1\n"), {"input:2: 'x' is not a whole number"});
  refuse_matrix(good("3 3 -1\n"), {"'-1' is no size"});
  refuse_matrix(good("3 3 1e1\n"), {"'1e1'"});
  refuse_matrix(good("3 3 99999999999999999999\n"), {"no size of a matrix"});
  refuse_matrix(good("9223372036854775807 9223372036854775807 1\n"), {"are more than"});
  refuse_matrix(good("3 4 1\n1 1 1\n"), {"input:2: the matrix is 3 x 4", "square"});
  refuse_matrix(good("0 0 0\n"), {"no vertex"});
  refuse_matrix(good("3 3 2\n1 1 1\n"), {"input: has 1 entry, but its header announces 2"});
  refuse_matrix(good("3 3 9223372036854775807\n1 1 1\n"), {"input: has 1 entry, but"});
  refuse_matrix(good("3 3 1\n1 1 1\n2 2 1\n"), {"input:4: one entry too many: the header announces 1"});
  refuse_matrix(good("3 3 0\n1 1 1\n"), {"input:3: one entry too many"});
  refuse_matrix(good("3 3 1\n0 1 1\n"), {"input:3: row 0 is out of range: 1 to 3"});
  refuse_matrix(good("3 3 1\n-1 1 1\n"), {"input:3: row -1 is out of range"});
  refuse_matrix(good("3 3 1\n1 4 1\n"), {"input:3: column 4 is out of range"});
  refuse_matrix(good("3 3 1\n1 4611686018427387904 1\n"), {"input:3: column 4611686018427387904"});
  refuse_matrix(good("3 3 1\n1 1\n"), {"input:3: has 2 fields, expected 3: row, column and value"});
  refuse_matrix(good("3 3 1\n1 1 1 1\n"), {"has 4 fields"});
  refuse_matrix(good("3 3 1\n1 1 nan\n"), {"weight nan", "--no-weights"});
  refuse_matrix(good("3 3 1\n1.0 1 2\n"), {"'1.0'"});
  refuse_matrix(begin("coordinate pattern general\n3 3 1\n1 1 1\n"),
                {"input:3: has 3 fields, expected 2: row and column; a pattern has no values"});
}

// import_edges_test.py has gzip.
std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

TEST_F(EdgeImport, AZstdThatIsCutOff) {
  std::string text;
  for (int v = 0; v < 5000; ++v) text += fmt::format("{} {}\n", v, v + 1);
  const auto whole = zstd(text);
  for (const auto size : {whole.size() - 1, whole.size() / 2, std::size_t{5}})
    refuse_edges(whole.substr(0, size), {"input: after line ", "damaged or cut off (it ends too early)"});
  refuse_edges(fmt::format("{}{}", whole, text), {"input: after line 5000: the compressed file is damaged"});
}

TEST_F(EdgeImport, HoweverItIsWritten) {
  std::vector<std::string> texts = {"0 1\n2 1\n3 0\n", "# c\r\n0\t1\r\n\r\n2,1\r\n%\r\n 3 , 0",
                                    "\xef\xbb\xbf\n\n0  1 \n3\t\t0\n2 1\t",
                                    fmt::format("{:>{}}0 1\n#{:x<{}}\n3 0\n2 1\n", "", 3 << 20, "", 5 << 20)};
  texts.push_back(zstd(texts[0]));
  texts.push_back(fmt::format("{}{}{}", zstd("0 1\n2"), zstd(""), zstd(" 1\n3 0")));
  for (const auto& text : texts) {
    write_for_all(input_, text);
    import_graph(test_world(), EdgeListFile{{input_}}, {output_, true});
    const GraphFile file(test_world(), output_);
    const auto rows = file.read_rows<std::int64_t>(0, file.info().nodes);
    EXPECT_EQ(rows.indptr, Buffer<std::int64_t>({0, 1, 3, 3, 3}));
    EXPECT_EQ(rows.indices, Buffer<std::int64_t>({3, 0, 2}));
    test_world().barrier();
  }
}

}  // namespace
}  // namespace espalier
