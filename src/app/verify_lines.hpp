// The lines of `espalier verify`: what was found, beside what is expected.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "espalier/comm/communicator.hpp"

namespace espalier {

class VerifyLines {
 public:
  /// `on_gpu`: losses are judged by a tolerance; `prints_values`: nothing is judged, and finish()
  /// prints the table of expected values.
  VerifyLines(const Communicator& world, bool on_gpu, bool prints_values)
      : world_(world), on_gpu_(on_gpu), prints_values_(prints_values) {}

  /// Collective. A line: what this rank has found, in words or numbers. `key`: of the value, where
  /// it is that of another line, "draws labor"; `where`: on which grid, for people.
  void check(const std::string& group, const std::string& name, const std::string& found,
             const std::string& key = {}, const std::string& where = {});

  /// Collective. The same where the words that are right are known; `cause`: of others.
  void check_rule(const std::string& group, const std::string& name, const std::string& found,
                  const std::string& expected, const std::string& cause);

  /// Collective. The last line. Throws UserError(kInternal) where a line differs, with what the
  /// first one means.
  void finish() const;

 private:
  void judge(const std::string& group, const std::string& name, const std::string& found,
             const std::string& expected, const std::string& cause, const std::string& where);

  const Communicator& world_;
  bool on_gpu_, prints_values_;
  std::vector<std::pair<std::string, std::string>> values_;  ///< by key, as found
  int lines_ = 0, differing_ = 0;
  std::string first_, meaning_;  ///< of the first that differs
};

}  // namespace espalier
