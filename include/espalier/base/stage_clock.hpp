// Times the stages of work on a space: on the CPU by the clock; on a GPU, where launchers return
// before the work is done, by moments of the compute stream. These are read when many more were
// noted since: the GPU still has work then, where reading all of an epoch's at its end left it
// without for milliseconds. There a stage is a range of the profiler, too.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

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
  struct Span {
    std::string path;
    CudaMoment begin, end;
    bool ended = false;
  };

 public:
  /// So many spans may be unread, some ten steps of training. The host waits for an earlier one.
  static constexpr std::size_t kMostUnread = 128;

  StageClock(const Cuda& cuda, StageTimers& timers) : cuda_(cuda), timers_(timers) {}
  class Scope {
   public:
    Scope(StageClock& clock, std::string_view name)
        : range_(std::string(name).c_str()), clock_(clock), span_(clock.begin(name)) {}
    ~Scope() {
      span_.end.record(clock_.cuda_);
      span_.ended = true;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProfilerRange range_;
    StageClock& clock_;
    Span& span_;
  };
  /// Adds to the timers what was measured and is not there yet. Waits for the GPU.
  void collect();

 private:
  Span& begin(std::string_view name);
  void read_first();

  Cuda cuda_;
  StageTimers& timers_;
  std::deque<Span> spans_;  ///< that were not read, in the order in which they began
  std::vector<Span> idle_;  ///< to be used again
};

}  // namespace espalier
