// Vertices in the order of a breadth-first search, cut into clusters of as many vertices:
// neighbours are near each other, and hubs spoil it. Each component is searched twice: from its
// first vertex, and from the last that was found, which lies at its rim. The whole pattern is
// on rank 0.
#include "order_by.hpp"
#include "order_pattern.hpp"

namespace espalier {

namespace {

class Search {
 public:
  explicit Search(const WholePattern& graph) : graph_(graph), seen_(graph.weights.size(), 0) {}

  /// The vertices, component after component.
  std::vector<std::int32_t> order() {
    for (std::int32_t v = 0; v < graph_.nodes(); ++v)
      if (seen_[v] == 0) {
        const auto begin = order_.size();
        visit(v, 1);
        const auto rim = order_.back();
        order_.resize(begin);
        visit(rim, 2);
      }
    return std::move(order_);
  }

 private:
  // Appends what can be reached, nearest first, and marks it.
  void visit(std::int32_t start, std::uint8_t mark) {
    auto next = order_.size();
    order_.push_back(start);
    seen_[start] = mark;
    for (; next < order_.size(); ++next)
      for (const auto u : graph_.row(order_[next]))
        if (seen_[u] != mark) {
          seen_[u] = mark;
          order_.push_back(u);
        }
  }

  const WholePattern& graph_;
  std::vector<std::uint8_t> seen_;
  std::vector<std::int32_t> order_;
};

}  // namespace

Buffer<std::uint16_t> order_by_bfs(const OrderTask& task) {
  const auto graph = gather_pattern(task, symmetric_rows(task));
  std::vector<std::uint16_t> clusters(graph.weights.size());
  const auto order = Search(graph).order();
  for (std::size_t k = 0; k < order.size(); ++k)
    clusters[order[k]] =
        static_cast<std::uint16_t>(even_owner(task.nodes, task.clusters, static_cast<std::int64_t>(k)));
  return scatter_clusters(task, clusters);
}

}  // namespace espalier
