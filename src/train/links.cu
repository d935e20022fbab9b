#include "links.inl.hpp"

namespace espalier {

void sum_link_losses(const Cuda& cuda, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                     const float* positive, const float* negative, double scale, float* dpositive,
                     float* dnegative, double* sum) {
  link_losses(cuda, loss, count, negatives, positive, negative, scale, dpositive, dnegative, sum);
}

std::unique_ptr<TaskOn<Cuda>> make_links(const Cuda& cuda, const Grid& grid, const Targets& targets,
                                         const TrainConfig& train) {
  return std::make_unique<LinksOn<Cuda>>(cuda, grid, dynamic_cast<const LinkTargets&>(targets), train);
}

}  // namespace espalier
