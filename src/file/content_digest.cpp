#include "espalier/file/content_digest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace espalier {

std::vector<std::int64_t> hashes_of(std::span<const std::string> texts) {
  std::vector<std::int64_t> hashes;
  for (const auto& text : texts) {
    std::uint64_t state = 0;
    for (const char letter : text) state = absorb(state, letter);
    hashes.push_back(static_cast<std::int64_t>(mix(state)));
  }
  return hashes;
}

std::int64_t fold_classes(std::span<const std::int64_t> classes) {
  if (classes.size() == 1) return classes[0];
  std::uint64_t state = 0;
  for (const auto of_type : classes) state = absorb(state, of_type);
  return static_cast<std::int64_t>(state);
}

std::uint64_t file_digest(std::span<const DatasetContent> datasets, std::int64_t classes) {
  std::uint64_t sum = mix(static_cast<std::uint64_t>(classes));
  for (const auto& dataset : datasets) {
    std::uint64_t state = 0;
    for (const char letter : dataset.name) state = absorb(state, letter);
    for (const auto extent : dataset.shape) state = absorb(state, extent);
    sum += mix(state ^ dataset.digest);
  }
  return sum;
}

bool only_names(const std::string& dataset) {
  return dataset.ends_with("/ids") || (dataset.starts_with("/labels/") && dataset.ends_with("/names")) ||
         dataset.ends_with("/feature_names") || dataset.ends_with("/feature_scales");
}

std::string describe_difference(const ContentDigests& there, const ContentDigests& here) {
  std::string words;
  const auto add = [&](const std::string& name, const std::string& what) {
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", name, what);
  };
  for (const auto& [name, digest] : there.datasets) {
    if (only_names(name)) continue;
    const auto mine = here.datasets.find(name);
    if (mine == here.datasets.end())
      add(name, "not here");
    else if (mine->second != digest)
      add(name, fmt::format("digest {} there, {} here", hex(digest), hex(mine->second)));
  }
  for (const auto& [name, digest] : here.datasets)
    if (!only_names(name) && !there.datasets.contains(name)) add(name, "not there");
  return words;
}

std::string hex(std::uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

std::optional<std::uint64_t> digest_from_hex(const std::string& text) {
  std::uint64_t digest = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, digest, 16);
  if (text.size() != 16 || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return digest;
}

}  // namespace espalier
