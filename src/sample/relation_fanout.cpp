// sampler.relation_fanout.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "espalier/base/error.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

namespace {

constexpr const char* kKey = "sampler.relation_fanout";

// "25,10"
std::vector<std::int64_t> numbers_of(const std::string& key, std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (;;) {
    const auto comma = std::min(text.find(','), text.size());
    std::int64_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + comma, number);
    if (result.ec != std::errc() || result.ptr != text.data() + comma || number < -1)
      usage_error("{}: \"{}\": give RELATION=N,N,.. with whole numbers, -1 = all, 0 = left out", kKey, key);
    numbers.push_back(number);
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<std::vector<std::int64_t>> relation_fanouts(const std::vector<std::string>& keys,
                                                        const std::vector<std::int64_t>& fanout,
                                                        const Schema& schema) {
  if (keys.empty()) return {};
  const auto relations = schema.relations().size();
  std::vector<std::vector<std::int64_t>> fanouts;
  for (const auto of_layer : fanout) fanouts.emplace_back(relations, of_layer);
  std::set<int> said;
  for (const auto& key : keys) {
    const auto equals = key.find('=');
    const auto name = key.substr(0, equals);
    const int relation = schema.find_relation(name);
    if (relation < 0)
      usage_error("{}: \"{}\": {} is no relation of this graph, or one of several; its relations are {}",
                  kKey, key, name, schema.relation_names());
    if (!said.insert(relation).second)
      usage_error("{}: \"{}\": {} is there twice", kKey, key, schema.full_name(relation));
    auto numbers = numbers_of(
        key, equals == std::string::npos ? std::string_view() : std::string_view(key).substr(equals + 1));
    if (numbers.size() == 1) numbers.resize(fanout.size(), numbers[0]);
    if (numbers.size() != fanout.size())
      usage_error("{}: \"{}\" has {} numbers for {} layers; give one, or one for each", kKey, key,
                  numbers.size(), fanout.size());
    const auto zeros = std::ranges::count(numbers, 0);
    if (zeros > 0 && zeros < std::ssize(numbers))
      usage_error(
          "{}: \"{}\": a relation is left out of all layers or of none, as evaluation sees one matrix; give "
          "0 "
          "alone, or no 0",
          kKey, key);
    for (std::size_t k = 0; k < fanout.size(); ++k) fanouts[k][relation] = numbers[k];
  }
  return fanouts;
}

static std::vector<std::int64_t> fanouts_of_layer(const SamplerShape& shape, std::size_t k) {
  return shape.relation_fanout.empty() ? std::vector<std::int64_t>{shape.fanout[k]}
                                       : shape.relation_fanout[k];
}

std::int64_t most_of_layer(const SamplerShape& shape, std::size_t k) {
  const auto fanouts = fanouts_of_layer(shape, k);
  return std::ranges::min(fanouts) < 0 ? -1
                                       : std::accumulate(fanouts.begin(), fanouts.end(), std::int64_t{0});
}

std::int64_t drawn_of_layer(const SamplerShape& shape, std::size_t k) {
  std::int64_t drawn = 0;
  for (const auto fanout : fanouts_of_layer(shape, k)) drawn += std::max<std::int64_t>(0, fanout);
  return drawn;
}

}  // namespace espalier
