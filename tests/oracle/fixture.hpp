// Reads the fixtures that tests/oracle/make_fixtures.py has written. Tests run in the
// repository's root.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

inline nlohmann::json read_fixture(const std::string& name) {
  std::ifstream file("tests/oracle/" + name + ".json");
  if (!file)
    throw std::runtime_error("tests/oracle/" + name + ".json is not there; run from the repository's root");
  return nlohmann::json::parse(file);
}

/// {"rows", "columns", "data"}
template <class T>
Matrix<T> to_matrix(const nlohmann::json& json) {
  Matrix<T> m(json.at("rows").get<std::int64_t>(), json.at("columns").get<std::int64_t>());
  for (std::size_t e = 0; e < m.data.size(); ++e)
    m.data[e] = static_cast<T>(json.at("data").at(e).get<double>());
  return m;
}

/// {"rows", "columns", "indptr", "indices", "values"}
inline Block to_block(const nlohmann::json& json) {
  Block block;
  block.rows = json.at("rows");
  block.columns = json.at("columns");
  block.indptr.clear();
  for (const auto& x : json.at("indptr")) block.indptr.push_back(x);
  for (const auto& x : json.at("indices")) block.indices.push_back(x);
  for (const auto& x : json.at("values")) block.values.push_back(x);
  return block;
}

}  // namespace espalier
