// What the screen says of a job: its grid, its graph, what a user may not have meant; its report,
// and the page of a plan.
#pragma once

#include <string>
#include <vector>

#include "espalier/job/job.hpp"
#include "espalier/job/job_plan.hpp"

namespace espalier {

/// The screen, as far as this rank speaks of a job: rank 0 does.
inline log::Listener screen_of(const Communicator& world) {
  return world.rank() == 0 ? log::Listener(log::write) : log::Listener();
}

/// "4 ranks as 2 block rows x 2 copies, partitioned topology, 1 thread per rank (OMP_NUM_THREADS),
/// on the CPU".
std::string grid_in_words(const Job& job);

/// "debian.order.h5: 1024 clusters by metis; largest part over the mean: vertices 1.01, edges 1.02,
/// train 1.01; batches of 64 groups". With graph.order.
std::string order_in_words(const Job& job);

/// "graph.cut.h5: 64 parts of edges by expansion; entries of the largest block row over the mean
/// 1.02". With graph.cut.
std::string cut_in_words(const Job& job);

/// "128 features", or of a graph with types "12 features of paper, 4 of author".
std::string inputs_in_words(const GraphInfo& graph);

/// "; 2 types (author 300, paper 800), target paper"; nothing of a graph without types.
std::string types_in_words(const Job& job);

/// " of split NAME", where the one that counts has a name.
std::string split_in_words(const GraphInfo& graph, const Config& config);

/// Says of a network that ignores types that it does, where the graph has some. From rank 0.
void note_ignored_types(const Job& job);

/// Says of a job that reads rows from disks by what means it does, and which it writes first. From
/// rank 0.
void say_how_disks_are_read(const Job& job);

/// "3 layers of sage, WIDTHS".
std::string layers_in_words(const Config& config, const std::string& widths);

/// What a user may not have meant: one warning each, from rank 0.
void warn_of_surprises(const Job& job);

/// RunOutput::write's PrintReport: to standard output, or where that takes nothing, standard error.
std::string print_report(const std::string& path, const std::string& text);

/// "schedule push, push, pull": one per layer, first: next to the batch.
std::string schedules_in_words(const Job& job, const std::vector<Schedule>& schedules);

// What the screen says of a plan.

/// A page for people.
std::string plan_page(const Plan& plan);

}  // namespace espalier
