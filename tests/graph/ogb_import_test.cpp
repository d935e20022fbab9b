// ranks: 1 2 3 4
// Laws: what an OGB folder says is what the graph file holds, whatever the number of ranks; a bad
// line is named by file and line on every rank, and nothing is left behind.
#include "espalier/graph/import.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "espalier/graph/graph_file.hpp"
#include "files.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

// A folder with one small directed graph: 5 vertices, edges with a duplicate, a self loop and a
// pair in both directions.
class OgbImport : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test_folder("ogb-import");
    output_ = folder_ + "/graph.h5";
    if (test_world().rank() == 0) {
      fs::create_directories(folder_ + "/raw");
      fs::create_directories(folder_ + "/split/time");
    }
    for (const auto& [name, text] : kGood) replace(name, text);
  }
  static inline const std::map<std::string, std::string> kGood = {
      {"raw/num-node-list.csv", "5\n"},
      {"raw/num-edge-list.csv", "6\n"},
      {"raw/edge.csv", "0,1\n3,1\n1,0\n0,1\n2,2\n4,1\n"},
      {"raw/edge-feat.csv", "9,0.5\n9,1\n9,2\n9,0.25\n9,4\n9,0\n"},
      {"raw/node-feat.csv", "1,0\n0.5,-2\n1e-3,7\n3,4\n0,0\n"},
      {"raw/node-label.csv", "2\n0\nnan\n1.0\n0\n"},
      {"split/time/train.csv", "4\n0\n"},
      {"split/time/valid.csv", "1\n"},
      {"split/time/test.csv", "3\n"}};
  void replace(const std::string& name, const std::string& text) const {
    write_for_all(folder_ + "/" + name, text);
  }
  OgbFolder options() const {
    OgbFolder o;
    o.folder = folder_;
    return o;
  }
  // Collective. The message of the failing import.
  std::string message(const OgbFolder& o, ExitCode code = ExitCode::kInput) const {
    const auto text = message_of(code, [&] { import_graph(test_world(), o, output_); });
    test_world().barrier();
    EXPECT_FALSE(fs::exists(output_));
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_EQ(entry.path().filename().string().find("partial"), std::string::npos) << entry.path();
    return text;
  }
  static std::vector<std::int64_t> row(const Csr<std::int64_t>& a, std::int64_t v) {
    const auto columns = a.row_indices(v);
    return {columns.begin(), columns.end()};
  }

  std::string folder_, output_;
};

using Ids = std::vector<std::int64_t>;

TEST_F(OgbImport, KeepsDirectionMergesDuplicatesAndReadsNodes) {
  import_graph(test_world(), options(), output_);
  const GraphFile file(test_world(), output_);
  EXPECT_EQ(file.info().directed, true);
  EXPECT_FALSE(file.info().weighted);
  EXPECT_EQ(file.info().classes, 3);
  const auto a = file.read_rows<std::int64_t>(0, 5);
  EXPECT_EQ(row(a, 0), Ids({1}));
  EXPECT_EQ(row(a, 1), Ids({0, 3, 4})) << "row v lists the sources of edges into v";
  EXPECT_EQ(row(a, 2), Ids({2}));
  EXPECT_EQ(a.entries(), 5);
  const auto h = file.read_features<float>(0, 5);
  EXPECT_EQ(h(1, 1), -2.0f);
  EXPECT_EQ(h(2, 0), 1e-3f);
  const auto labels = file.read_labels(0, 5);
  EXPECT_EQ(std::vector<std::int32_t>(labels.begin(), labels.end()),
            std::vector<std::int32_t>({2, 0, -1, 1, 0}));
  const auto train = file.read_split(Split::kTrain);
  EXPECT_EQ(Ids(train.begin(), train.end()), Ids({0, 4})) << "ascending, whatever the order of the file";
  check_splits(test_world(), file);
}

TEST_F(OgbImport, SymmetrizesDropsLoopsAndAddsWeights) {
  auto o = options();
  o.edges.symmetrize = o.edges.drop_self_loops = true;
  o.edge_weight = 1;
  o.half = true;
  import_graph(test_world(), o, output_);
  const GraphFile file(test_world(), output_);
  EXPECT_EQ(file.info().directed, false);
  EXPECT_TRUE(file.info().half_features);
  const auto a = file.read_rows<std::int32_t>(0, 5);
  EXPECT_EQ(a.entries(), 6);
  EXPECT_EQ(a.row_size(2), 0) << "only the self loop was there";
  // A + A^T at (0,1): 0.5 + 0.25 (the line twice) + 2 (the other direction).
  EXPECT_EQ(a.row_values(0)[0], 2.75f);
  EXPECT_EQ(a.row_values(1)[0], 2.75f);
  EXPECT_EQ(a.row_values(1)[2], 0.0f) << "a weight of zero is an entry";
}

TEST_F(OgbImport, ReadsGzipLikeText) {
  if (test_world().rank() == 0) {
    gzFile out = gzopen((folder_ + "/raw/edge.csv.gz").c_str(), "wb");
    gzputs(out, "0,1\r\n1,0\r\n2,3\r\n3,2\r\n4,0\r\n0,4\r\n\n");
    gzclose(out);
    fs::remove(folder_ + "/raw/edge.csv");
    fs::remove(folder_ + "/raw/num-edge-list.csv");
    fs::remove(folder_ + "/raw/node-feat.csv");
    fs::remove(folder_ + "/raw/node-label.csv");
    fs::remove_all(folder_ + "/split");
  }
  test_world().barrier();
  import_graph(test_world(), options(), output_);
  const GraphFile file(test_world(), output_);
  EXPECT_EQ(file.info().edges, 6);
  EXPECT_EQ(file.info().directed, false) << "symmetric without being asked to";
  EXPECT_EQ(file.info().features, 0);
  EXPECT_EQ(file.info().classes, 0);
  EXPECT_EQ(file.info().train, 0);
}

TEST_F(OgbImport, SeveralLabelColumnsAreMultiLabels) {
  replace("raw/node-label.csv", "1,0\n0,0\n1,1\n0,1\nnan,0.0\n");
  import_graph(test_world(), options(), output_);
  const GraphFile file(test_world(), output_);
  EXPECT_TRUE(file.info().multi_label);
  EXPECT_EQ(file.info().classes, 2);
  EXPECT_EQ(file.read_multi_labels(2, 5).data, (Buffer<std::uint8_t>{1, 1, 0, 1, kUnknownLabel, 0}));
}

// One damage at a time: the file, its text, what the message must contain.
TEST_F(OgbImport, NamesTheBadLine) {
  struct Case {
    const char *file, *bad, *message;
  };
  const Case cases[] = {
      {"raw/edge.csv", "0,1\n3,x\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:2: 'x' is not a whole number"},
      {"raw/edge.csv", "0,1\n3,1\n1,0\n0,1\n2,5\n4,1\n", "edge.csv:5: vertex 5 is out of range"},
      {"raw/edge.csv", "0,1\n3,1\n-1,0\n0,1\n2,5\n4,1\n", "edge.csv:3: vertex -1 is out of range"},
      {"raw/edge.csv", "0,1\n3\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:2: has only 1 fields"},
      {"raw/edge.csv", "0,1,7\n3,1\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:1: has 3 fields, too many"},
      {"raw/edge.csv", "0,1\n\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:2: is empty"},
      {"raw/edge.csv", "0,1\n3,1\n1,0\n", "has 3 lines, but there are 6 edges"},
      {"raw/node-feat.csv", "1,0\n0.5\n1,7\n3,4\n0,0\n",
       "node-feat.csv:2: has 1 fields, the first line has 2"},
      {"raw/node-feat.csv", "1,0\n0,nan\n1,7\n3,4\n0,0\n", "node-feat.csv:2: column 1 is nan"},
      {"raw/node-feat.csv", "1,0\n1,1\n1,7\n3,4\n", "has 4 lines, but there are 5 vertices"},
      {"raw/node-feat.csv", "1,0\n1,1\n1,7\n3,4\n1,1\n1,1\n", "node-feat.csv:6: one line too many"},
      {"raw/node-label.csv", "2\n0\nnan\n1.5\n0\n", "node-label.csv:4: label 1.5 is not a whole number"},
      {"raw/node-label.csv", "2\n-1\nnan\n1\n0\n", "node-label.csv:2: label -1"},
      {"raw/node-label.csv", "1,0\n1,2\n1,0\n0,0\n1,1\n", "node-label.csv:2: label 2 is not 0 or 1, nor nan"},
      {"raw/node-label.csv", "1,0\n1,0\n1,0\n0,255\n1,1\n",
       "node-label.csv:4: label 255 is not 0 or 1, nor nan"},
      {"split/time/train.csv", "4\n5\n", "train.csv:2: vertex 5 is out of range"},
      {"split/time/train.csv", "4\n2\n", "train.csv:2: vertex 2 has no label"},
      {"split/time/valid.csv", "1\n4\n", "valid.csv:2: vertex 4 is already in train"},
      {"raw/num-node-list.csv", "5\n5\n", "a second graph"},
  };
  for (const auto& c : cases) {
    replace(c.file, c.bad);
    expect_words(message(options()), {c.message});
    replace(c.file, kGood.at(c.file));
  }
  EXPECT_NO_THROW(import_graph(test_world(), options(), output_)) << "all damage is repaired";
}

TEST_F(OgbImport, NamesTheBadArgument) {
  auto o = options();
  o.split = "species";
  expect_words(message(o), {"there is time"});
  o = options();
  o.edge_weight = 2;
  expect_words(message(o, ExitCode::kUsage), {"has 2 columns"});
  o = options();
  o.folder = folder_ + "/nowhere";
  expect_words(message(o), {"no such folder"});
}

TEST_F(OgbImport, ACutOffGzipFileIsAnError) {
  if (test_world().rank() == 0) {
    gzFile out = gzopen((folder_ + "/raw/edge.csv.gz").c_str(), "wb");
    for (int i = 0; i < 20000; ++i) gzprintf(out, "%d,%d\n", i * 7 % 5, i * 3 % 4);
    gzclose(out);
    fs::resize_file(folder_ + "/raw/edge.csv.gz", fs::file_size(folder_ + "/raw/edge.csv.gz") / 2);
  }
  test_world().barrier();
  expect_words(message(options()), {"damaged or cut off"});
}

}  // namespace
}  // namespace espalier
