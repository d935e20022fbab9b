// The threads of a grid, block after block, as fibers on one thread of the process.
//
// A thread runs until it ends or waits at a barrier; then another one runs. The order of blocks and
// of the threads in a block is a shuffle, so that a result which depends on it shows. A fiber whose
// thread ended takes the next thread of the block, so a kernel without barriers needs one fiber. A
// barrier that some thread of the block (or lane of the mask) never reaches ends the program.
//
// Where races are looked for (watch.hpp) each thread of a block has a fiber of its own, and blocks
// take turns among four sets of them, so that two blocks have no order but by what they wait for.
// Of a launch 32 blocks are looked at, as switching takes long, which the shuffle chooses;
// ESPALIER_WATCHED_BLOCKS asks for another number.
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "cuda_runtime.h"
#include "memory.hpp"
#include "watch.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace espalier_emulation {

static const char* kernel_name = nullptr;
void set_kernel_name(const char* name) {
  kernel_name = name;
}
[[noreturn]] void give_up(const char* what) {
  if (kernel_name != nullptr)
    std::fprintf(stderr, "emulated CUDA: kernel %s, block %u, thread %u: %s\n", kernel_name, blockIdx.x,
                 threadIdx.x, what);
  else
    std::fprintf(stderr, "emulated CUDA: block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, what);
  std::abort();
}

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

// What the lanes of a warp had, until the last of them comes back for more.
struct Exchange {
  std::uint64_t values[32] = {};
  unsigned readers = 0;
  watch::Moment complete;
};

#if defined(ESPALIER_WATCH_RACES) || defined(ESPALIER_WATCH_MEMORY)
// By the compiler, as sanitizers follow jumps of the C library, on the stack that they know.
struct Place {
  void* words[5];
};
#define ESPALIER_REMEMBER(place) __builtin_setjmp((place).words)
#define ESPALIER_SWITCHES [[gnu::noipa]]  // all registers may change
[[noreturn]] ESPALIER_SWITCHES void go_to(Place& place) {
  __builtin_longjmp(place.words, 1);
}
#else
struct Place {
  jmp_buf words;
};
#define ESPALIER_REMEMBER(place) _setjmp((place).words)
#define ESPALIER_SWITCHES
[[noreturn]] void go_to(Place& place) {
  _longjmp(place.words, 1);
}
#endif

struct Fiber {
  ucontext_t beginning;
  bool begun = false;
  Place place;  // where it goes on, once begun
  void* stack = nullptr;
  unsigned thread = 0;  // number in the block
  uint3 index{};        // and its place there
  // What it waits for.
  unsigned mask = 0;
  std::uint64_t value = 0;
  Exchange* exchange = nullptr;  // the last that it took part in
  int sum = 0;
  // For who looks for races.
  watch::Strand strand;
  watch::Moment arrived;     // at what it waits for; nobody else releases it
  std::uint64_t launch = 0;  // the last that it was part of

  Fiber() {
    stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (stack == MAP_FAILED) give_up("no memory for a stack");
  }
  ~Fiber() { munmap(stack, kStackBytes); }
};

struct Warp {
  Fiber* waiting[32] = {};  // by lane
  unsigned present = 0;
  std::deque<Exchange> exchanges;

  Exchange& free_exchange() {
    for (auto& exchange : exchanges)
      if (exchange.readers == 0) return exchange;
    return exchanges.emplace_back();
  }
};

// Streams share two times four sets, as there may be 8,000 fibers.
constexpr std::size_t kSets = 4, kStreams = 2;

struct Engine {
  Place scheduler;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  std::vector<std::unique_ptr<Fiber>> sets[kStreams][kSets];  // by thread
  std::vector<std::unique_ptr<Fiber>>* set = nullptr;         // of the block under way
  bool watched = false;                                       // is it looked at?
  std::vector<Fiber*> taking_part;                            // in the launch
  std::uint64_t launches = 0;
  watch::Moment launched, ended_launch, block_complete;
  std::deque<Fiber*> ready;
  Fiber* running = nullptr;
  void (*invoke)(void*) = nullptr;
  void* closure = nullptr;
  // Of the block under way.
  std::vector<unsigned> order;  // of its threads
  std::size_t started = 0;
  unsigned threads = 0, ended = 0;
  std::vector<Fiber*> at_block_barrier;
  std::vector<Warp> warps;
};
Engine engine;

bool is_watched() {
  return watch::kRaces && engine.watched;
}

void set_thread(unsigned thread) {
  threadIdx.x = thread % blockDim.x;
  threadIdx.y = thread / blockDim.x % blockDim.y;
  threadIdx.z = thread / blockDim.x / blockDim.y;
}

// Contexts begin fibers and jumps go between them: a context would ask the kernel for the signal
// mask at every switch.
ESPALIER_SWITCHES void leave(Fiber& self) {
  if (ESPALIER_REMEMBER(self.place) == 0) go_to(engine.scheduler);
}

ESPALIER_SWITCHES void resume(Fiber* fiber) {
  engine.running = fiber;
  if (ESPALIER_REMEMBER(engine.scheduler) != 0) return;
  if (engine.running->begun) go_to(engine.running->place);
  engine.running->begun = true;
  setcontext(&engine.running->beginning);
}

// Its thread has read what the lanes had.
void give_back(Fiber& fiber) {
  if (fiber.exchange != nullptr) fiber.exchange->readers &= ~(1u << fiber.thread % 32);
  fiber.exchange = nullptr;
}

void fiber_main() {
  for (;;) {
    Fiber& self = *engine.running;
    do {
      self.thread = engine.order[engine.started++];
      set_thread(self.thread);
      self.index = threadIdx;
      engine.invoke(engine.closure);
      ++engine.ended;
      give_back(self);
    } while (!is_watched() && engine.started < engine.order.size());
    if (!is_watched()) engine.idle.push_back(&self);
    leave(self);
  }
}

Fiber* new_fiber(std::vector<std::unique_ptr<Fiber>>& fibers) {
  fibers.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers.back();
  getcontext(&fiber.beginning);
  fiber.beginning.uc_stack.ss_sp = fiber.stack;
  fiber.beginning.uc_stack.ss_size = kStackBytes;
  fiber.beginning.uc_link = nullptr;
  makecontext(&fiber.beginning, fiber_main, 0);
  return &fiber;
}

// For the next thread of the block.
Fiber* free_fiber() {
  if (is_watched()) {
    auto& set = *engine.set;
    const unsigned thread = engine.order[engine.started];
    while (set.size() <= thread) new_fiber(set);
    return set[thread].get();
  }
  if (engine.idle.empty()) return new_fiber(engine.fibers);
  Fiber* const fiber = engine.idle.back();
  engine.idle.pop_back();
  return fiber;
}

// It comes behind what the stream did before the launch.
void take_part(Fiber& fiber) {
  if (fiber.launch == engine.launches) return;
  fiber.launch = engine.launches;
  engine.launched.acquire();
  engine.taking_part.push_back(&fiber);
}

void run(Fiber* fiber) {
  if (!is_watched()) return resume(fiber);
  fiber->strand.enter("a thread of a kernel");
  take_part(*fiber);
  resume(fiber);
  watch::Strand::leave();
}

void wait() {
  Fiber& self = *engine.running;
  leave(self);
  threadIdx = self.index;
}

void run_block() {
  engine.started = 0;
  engine.ended = 0;
  engine.at_block_barrier.clear();
  engine.warps.resize((engine.threads + 31) / 32);
  for (auto& warp : engine.warps) {
    warp.present = 0;
    for (auto& exchange : warp.exchanges) exchange.readers = 0;
  }
  for (auto& fiber : is_watched() ? *engine.set : engine.fibers) fiber->exchange = nullptr;
  if (is_watched()) watch::shared_memory_begins_anew();
  while (engine.ended < engine.threads) {
    if (!engine.ready.empty()) {
      Fiber* next = engine.ready.front();
      engine.ready.pop_front();
      run(next);
    } else if (engine.started < engine.order.size()) {
      run(free_fiber());
    } else {
      give_up("threads wait at a barrier that others of the block, or lanes of the mask, never reach");
    }
  }
}

unsigned seed_of_order() {
  return static_cast<unsigned>(number_from("ESPALIER_EMULATED_ORDER", 1));
}

template <class T>
void shuffle(std::vector<T>& items, std::minstd_rand& random) {
  for (std::size_t k = items.size(); k > 1; --k) std::swap(items[k - 1], items[random() % k]);
}

}  // namespace

int lane() {
  return static_cast<int>(engine.running->thread % 32);
}

int wait_for_block(int value) {
  Fiber& self = *engine.running;
  if (engine.ended > 0) give_up("waits for its block, of which threads have ended");
  self.value = static_cast<std::uint64_t>(value);
  if (is_watched()) self.arrived.release();
  engine.at_block_barrier.push_back(&self);
  if (engine.at_block_barrier.size() == engine.threads) {
    int sum = 0;
    for (const Fiber* fiber : engine.at_block_barrier) sum += static_cast<int>(fiber->value);
    for (Fiber* fiber : engine.at_block_barrier) {
      fiber->sum = sum;
      if (is_watched()) fiber->arrived.acquire();
      if (fiber != &self) engine.ready.push_back(fiber);
    }
    if (is_watched()) engine.block_complete.release_alone();
    engine.at_block_barrier.clear();
    return sum;
  }
  wait();
  if (is_watched()) engine.block_complete.acquire();
  return self.sum;
}

// Who waits for others, or only asks them, as a shuffle does, which says nothing of memory.
const std::uint64_t* exchange_in_warp(unsigned mask, std::uint64_t value, bool orders_memory) {
  orders_memory = orders_memory && is_watched();
  Fiber& self = *engine.running;
  const unsigned own = self.thread % 32;
  if ((mask >> own & 1u) == 0) give_up("waits for lanes of a mask that it is not one of");
  give_back(self);
  self.mask = mask;
  self.value = value;
  if (orders_memory) self.arrived.release();
  Warp& warp = engine.warps[self.thread / 32];
  warp.waiting[own] = &self;
  warp.present |= 1u << own;
  bool all = (warp.present & mask) == mask;
  for (unsigned rest = mask; all && rest != 0; rest &= rest - 1)
    all = warp.waiting[std::countr_zero(rest)]->mask == mask;
  if (!all) {
    wait();
    if (orders_memory) self.exchange->complete.acquire();
    return self.exchange->values;
  }
  Exchange& exchange = warp.free_exchange();
  exchange.readers = mask;
  warp.present &= ~mask;
  for (unsigned k = 0; k < 32; ++k) {
    const unsigned lane = (own + k) % 32;  // in another order each time
    const bool takes_part = (mask >> lane & 1u) != 0;
    exchange.values[lane] = takes_part ? warp.waiting[lane]->value : 0;
    if (!takes_part) continue;
    warp.waiting[lane]->exchange = &exchange;
    if (orders_memory) warp.waiting[lane]->arrived.acquire();
    if (lane != own) engine.ready.push_back(warp.waiting[lane]);
  }
  if (orders_memory) exchange.complete.release_alone();
  return exchange.values;
}

bool good_configuration(dim3 grid, dim3 block) {
  const auto threads = static_cast<std::uint64_t>(block.x) * block.y * block.z;
  return grid.x > 0 && grid.x <= 0x7fffffffu && grid.y > 0 && grid.y <= 65535 && grid.z > 0 &&
         grid.z <= 65535 && threads > 0 && threads <= 1024;
}

namespace {

// What the stream did is before all of a launch, and all of it before what the stream does next.
class Launch {
 public:
  explicit Launch(cudaStream_t stream) : of_(order_of(stream)) {
    if (!watch::kRaces) return;
    ++engine.launches;
    engine.taking_part.clear();
    of_.begin();
    engine.launched.release_alone();
    watch::Strand::leave();
  }
  ~Launch() {
    if (!watch::kRaces) return;
    bool first = true;
    for (Fiber* const fiber : engine.taking_part) {
      fiber->strand.enter("");
      first ? engine.ended_launch.release_alone() : engine.ended_launch.release();
      first = false;
      watch::Strand::leave();
    }
    of_.begin();
    if (!first) engine.ended_launch.acquire();
    watch::Strand::leave();
  }
  std::vector<std::unique_ptr<Fiber>>* set_of(std::size_t turn) {
    return &engine.sets[of_.number % kStreams][turn % kSets];
  }

 private:
  StreamOrder& of_;
};

}  // namespace

void run_grid(dim3 grid, dim3 block, void (*invoke)(void*), void* closure, cudaStream_t stream,
              BlockOrder order) {
  const DeviceAccess access;
  Launch launch(stream);
  thread_local std::minstd_rand random(seed_of_order() + 1);
  gridDim = grid;
  blockDim = block;
  engine.invoke = invoke;
  engine.closure = closure;
  engine.threads = block.x * block.y * block.z;
  engine.order.resize(engine.threads);
  for (unsigned k = 0; k < engine.threads; ++k) engine.order[k] = k;
  shuffle(engine.order, random);
  std::vector<std::uint64_t> blocks(static_cast<std::uint64_t>(grid.x) * grid.y * grid.z);
  for (std::size_t k = 0; k < blocks.size(); ++k) blocks[k] = k;
  if (order == BlockOrder::kShuffled) shuffle(blocks, random);
  static const std::size_t most_watched = number_from("ESPALIER_WATCHED_BLOCKS", 32);
  std::size_t turn = 0;
  for (const auto number : blocks) {
    engine.watched = turn < most_watched;
    engine.set = launch.set_of(turn++);
    blockIdx = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                static_cast<unsigned>(number / grid.x / grid.y)};
    run_block();
  }
}

}  // namespace espalier_emulation
