// What the errors that users meet say, in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "espalier/base/error.hpp"

namespace espalier {

/// The message of the UserError, of this code, with which `work` ends; empty where it ends well.
template <class Work>
std::string message_of(ExitCode code, const Work& work) {
  try {
    work();
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return {};
}

inline void expect_words(const std::string& said, const std::vector<std::string>& words) {
  for (const auto& word : words)
    EXPECT_NE(said.find(word), std::string::npos) << "\"" << said << "\"\nshould say " << word;
}

/// `work` is refused, with all of these words.
template <class Work>
void expect_refused(ExitCode code, const std::vector<std::string>& words, const Work& work) {
  const auto said = message_of(code, work);
  EXPECT_NE(said, "") << "nothing was refused";
  expect_words(said, words);
}

}  // namespace espalier
