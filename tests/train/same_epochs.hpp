// What two trainings must agree in that differ in when things are done only: digests, losses,
// scores and what every stage and step moved.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "espalier/train/report.hpp"

namespace espalier {

inline void expect_same_volumes(const std::map<std::string, StageVolume>& a,
                                const std::map<std::string, StageVolume>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [label, volume] : a) {
    const auto& other = b.at(label);
    EXPECT_EQ(volume.messages, other.messages) << label;
    EXPECT_EQ(volume.rounds, other.rounds) << label;
    EXPECT_EQ(volume.total, other.total) << label;
    EXPECT_EQ(volume.max_rank, other.max_rank) << label;
    EXPECT_NEAR(volume.predicted, other.predicted, 1e-9 * volume.predicted)
        << label << ", a sum of fractions";
  }
}

inline void expect_same_epochs(const std::vector<EpochReport>& a, const std::vector<EpochReport>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t e = 0; e < a.size(); ++e) {
    SCOPED_TRACE(fmt::format("epoch {}", e + 1));
    EXPECT_EQ(*a[e].loss, *b[e].loss);
    EXPECT_EQ(a[e].counts.digest, b[e].counts.digest);
    EXPECT_EQ(a[e].counts.input_rows, b[e].counts.input_rows);
    EXPECT_EQ(a[e].valid.has_value(), b[e].valid.has_value());
    if (a[e].valid && b[e].valid) EXPECT_EQ(a[e].valid->find("macro_f1"), b[e].valid->find("macro_f1"));
    expect_same_volumes(a[e].bytes, b[e].bytes);
    expect_same_volumes(a[e].steps, b[e].steps);
  }
}

}  // namespace espalier
