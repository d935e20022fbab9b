// What the screen says of a plan.
#pragma once

#include <string>

#include "espalier/job/job_plan.hpp"

namespace espalier {

/// A page for people.
std::string plan_page(const Plan& plan);

}  // namespace espalier
