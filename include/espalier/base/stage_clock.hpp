// Times the stages of work on a space: on the CPU by the clock; on a GPU, where launchers return
// before the work is done, by moments of the compute stream, which are read when someone waits for
// the GPU anyway. There a stage is a range of the profiler's timeline, too, so that each kernel is
// known to be of one.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "espalier/base/clock.hpp"
#include "espalier/base/cuda.hpp"

namespace espalier {

template <class Space>
class StageClock;

template <>
class StageClock<Cpu> {
 public:
  StageClock(const Cpu&, StageTimers& timers) : timers_(timers) {}
  class Scope : public StageTimers::Scope {
   public:
    Scope(StageClock& clock, std::string_view name) : StageTimers::Scope(clock.timers_, name) {}
  };
  /// Adds what was measured to the timers.
  void collect() {}

 private:
  StageTimers& timers_;
};

template <>
class StageClock<Cuda> {
 public:
  StageClock(const Cuda& cuda, StageTimers& timers) : cuda_(cuda), timers_(timers) {}
  class Scope {
   public:
    Scope(StageClock& clock, std::string_view name)
        : range_(std::string(name).c_str()), clock_(clock), number_(clock.begin(name)) {}
    ~Scope() { clock_.spans_[number_].end.record(clock_.cuda_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProfilerRange range_;
    StageClock& clock_;
    std::size_t number_;
  };
  /// Adds what was measured since the last call to the timers. Waits for the GPU.
  void collect();

 private:
  struct Span {
    std::string path;
    CudaMoment begin, end;
  };
  std::size_t begin(std::string_view name);

  Cuda cuda_;
  StageTimers& timers_;
  std::deque<Span> spans_;  ///< kept for the next epoch
  std::size_t used_ = 0;
};

}  // namespace espalier
