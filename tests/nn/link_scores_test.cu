// ranks: 1
// Law: scores of links, their gradients and the lists of places have the CPU's bits on a GPU.
#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"
#include "nn/link_scores_cases.hpp"

namespace espalier {
namespace {

class LinkScoresCuda : public CudaTest {
 protected:
  LinkResults on_gpu(const LinkScore& score, const LinkCase& c) {
    const auto heads = upload(gpu(), c.heads), tails = upload(gpu(), c.tails), of = upload(gpu(), c.of);
    return by_link_scores(gpu(), score, c, {c.links(), heads.data(), tails.data(), of.data()});
  }
};

TEST_F(LinkScoresCuda, AreTheCpusBits) {
  std::mt19937_64 random(test_seed(66));
  for_each_link_score([&](const LinkScore& score) {
    for (const std::int64_t width : {1, 2, 31, 34, 66})
      for (const std::int64_t links : {0, 1, 7, 50}) {
        if (!score.kind->takes_width(width)) continue;
        SCOPED_TRACE(testing::Message() << width << " wide, " << links << " links");
        const LinkCase c(*score.kind, 13, width, 3, links, random);
        expect_same_bits(on_gpu(score, c), on_cpu(score, c));
      }
  });
}

TEST_F(LinkScoresCuda, RelationsOfManyLinksAndOfNoneAreTheCpusBits) {
  std::mt19937_64 random(test_seed(67));
  for_each_link_score([&](const LinkScore& score) {
    for (const std::int64_t relations : {1, 2, 1700}) {
      const LinkCase c(*score.kind, 40, 6, relations, 1600, random);
      expect_same_bits(on_gpu(score, c), on_cpu(score, c));
    }
  });
}

TEST_F(LinkScoresCuda, DistancesOfZeroAndRowsOfAnySizeAreTheCpusNumbers) {
  std::mt19937_64 random(test_seed(68));
  for_each_link_score([&](const LinkScore& score) {
    for (const float size : {0.0f, 1e-45f, 1e-30f, 1e30f, 3e38f}) {
      SCOPED_TRACE(size);
      LinkCase c(*score.kind, 12, 34, 2, 60, random);
      for (auto* m : {&c.h, &c.relations})
        for (float& x : m->data) x *= size;
      expect_same_bits(on_gpu(score, c), on_cpu(score, c));
    }
  });
}

TEST_F(LinkScoresCuda, PlacesAreTheCpus) {
  std::mt19937_64 random(test_seed(69));
  const auto& kind = link_score_kinds()[1];
  for (const std::int64_t links : {0, 1, 2000}) {
    const LinkCase c(kind, 70, 2, 5, links, random);
    LinkPlaces expected;
    LinkPlacesOn<Cuda> places;
    find_link_places(Cpu{1}, c.view(), 70, 5, expected);
    const auto heads = upload(gpu(), c.heads), tails = upload(gpu(), c.tails), of = upload(gpu(), c.of);
    find_link_places(gpu(), {links, heads.data(), tails.data(), of.data()}, 70, 5, places);
    EXPECT_EQ(download(gpu(), places.by_row.begins), expected.by_row.begins);
    EXPECT_EQ(download(gpu(), places.by_row.members), expected.by_row.members);
    EXPECT_EQ(download(gpu(), places.by_relation.begins), expected.by_relation.begins);
    EXPECT_EQ(download(gpu(), places.by_relation.members), expected.by_relation.members);
    EXPECT_EQ(download(gpu(), places.chunks_before), expected.chunks_before);
  }
}

}  // namespace
}  // namespace espalier
