#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ogb_tables.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// meta.json, or an empty object where there is no such file or it is something else.
nlohmann::json read_meta(const fs::path& folder) {
  auto none = nlohmann::json::object();
  std::error_code error;
  if (!fs::is_regular_file(folder / "meta.json", error)) return none;
  std::ifstream file(folder / "meta.json");
  auto meta = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  return meta.is_object() ? meta : none;
}

// true, "True" and "true" say yes (OGB writes such words in quotes).
bool says(const nlohmann::json& value, bool what) {
  if (value.is_boolean()) return value.get<bool>() == what;
  if (!value.is_string()) return false;
  auto word = value.get<std::string>();
  for (auto& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return word == (what ? "true" : "false");
}

}  // namespace

std::string one_direction_by(const std::string& folder) {
  const auto meta = read_meta(folder);
  for (const auto& [key, value] :
       {std::pair{"add_inverse_edge", true}, {"is_directed", false}, {"directed", false}})
    if (const auto found = meta.find(key); found != meta.end() && says(*found, value))
      return fmt::format("\"{}\": {}", key, found->dump());
  return {};
}

GraphDescription describe_folder(const std::string& place, const std::string& layout) {
  const auto folder = fs::absolute(place).lexically_normal();
  const auto name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  GraphDescription description{name.string(), layout + " folder " + name.string(), false};
  const auto meta = read_meta(folder);
  if (meta.contains("name") && meta["name"].is_string()) description.name = meta["name"];
  if (meta.contains("source") && meta["source"].is_string()) description.source = meta["source"];
  return description;
}

}  // namespace espalier
