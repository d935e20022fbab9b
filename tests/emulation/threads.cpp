// The threads of a grid, block after block, as fibers on one thread of the process.
//
// A thread runs until it ends or waits at a barrier; then another one runs. The order of blocks and
// of the threads in a block is a shuffle, so that a result which depends on it shows. A fiber whose
// thread ended takes the next thread of the block, so a kernel without barriers needs one fiber. A
// barrier that some thread of the block (or lane of the mask) never reaches ends the program.
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
};

struct Fiber {
  ucontext_t beginning;
  bool begun = false;
  jmp_buf place;  // where it goes on, once begun
  void* stack = nullptr;
  unsigned thread = 0;  // number in the block
  uint3 index{};        // and its place there
  // What it waits for.
  unsigned mask = 0;
  std::uint64_t value = 0;
  Exchange* exchange = nullptr;  // the last that it took part in
  int sum = 0;

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

struct Engine {
  jmp_buf scheduler;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
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

void set_thread(unsigned thread) {
  threadIdx.x = thread % blockDim.x;
  threadIdx.y = thread / blockDim.x % blockDim.y;
  threadIdx.z = thread / blockDim.x / blockDim.y;
}

// Contexts begin fibers and jumps go between them: a context would ask the kernel for the signal
// mask at every switch.
void leave(Fiber& self) {
  if (_setjmp(self.place) == 0) _longjmp(engine.scheduler, 1);
}

void resume(Fiber* fiber) {
  engine.running = fiber;
  if (_setjmp(engine.scheduler) != 0) return;
  if (engine.running->begun) _longjmp(engine.running->place, 1);
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
    while (engine.started < engine.order.size()) {
      self.thread = engine.order[engine.started++];
      set_thread(self.thread);
      self.index = threadIdx;
      engine.invoke(engine.closure);
      ++engine.ended;
      give_back(self);
    }
    engine.idle.push_back(&self);
    leave(self);
  }
}

Fiber* new_fiber() {
  engine.fibers.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *engine.fibers.back();
  getcontext(&fiber.beginning);
  fiber.beginning.uc_stack.ss_sp = fiber.stack;
  fiber.beginning.uc_stack.ss_size = kStackBytes;
  fiber.beginning.uc_link = nullptr;
  makecontext(&fiber.beginning, fiber_main, 0);
  return &fiber;
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
  for (auto& fiber : engine.fibers) fiber->exchange = nullptr;
  while (engine.ended < engine.threads) {
    if (!engine.ready.empty()) {
      Fiber* next = engine.ready.front();
      engine.ready.pop_front();
      resume(next);
    } else if (engine.started < engine.order.size()) {
      Fiber* next = nullptr;
      if (engine.idle.empty()) {
        next = new_fiber();
      } else {
        next = engine.idle.back();
        engine.idle.pop_back();
      }
      resume(next);
    } else {
      give_up("threads wait at a barrier that others of the block, or lanes of the mask, never reach");
    }
  }
}

unsigned seed_of_order() {
  const char* seed = std::getenv("ESPALIER_EMULATED_ORDER");
  return seed == nullptr ? 1u : static_cast<unsigned>(std::strtoul(seed, nullptr, 10));
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
  engine.at_block_barrier.push_back(&self);
  if (engine.at_block_barrier.size() == engine.threads) {
    int sum = 0;
    for (const Fiber* fiber : engine.at_block_barrier) sum += static_cast<int>(fiber->value);
    for (Fiber* fiber : engine.at_block_barrier) {
      fiber->sum = sum;
      if (fiber != &self) engine.ready.push_back(fiber);
    }
    engine.at_block_barrier.clear();
    return sum;
  }
  wait();
  return self.sum;
}

const std::uint64_t* exchange_in_warp(unsigned mask, std::uint64_t value) {
  Fiber& self = *engine.running;
  const unsigned own = self.thread % 32;
  if ((mask >> own & 1u) == 0) give_up("waits for lanes of a mask that it is not one of");
  give_back(self);
  self.mask = mask;
  self.value = value;
  Warp& warp = engine.warps[self.thread / 32];
  warp.waiting[own] = &self;
  warp.present |= 1u << own;
  bool all = (warp.present & mask) == mask;
  for (unsigned rest = mask; all && rest != 0; rest &= rest - 1)
    all = warp.waiting[std::countr_zero(rest)]->mask == mask;
  if (!all) {
    wait();
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
    if (lane != own) engine.ready.push_back(warp.waiting[lane]);
  }
  return exchange.values;
}

bool good_configuration(dim3 grid, dim3 block) {
  const auto threads = static_cast<std::uint64_t>(block.x) * block.y * block.z;
  return grid.x > 0 && grid.x <= 0x7fffffffu && grid.y > 0 && grid.y <= 65535 && grid.z > 0 &&
         grid.z <= 65535 && threads > 0 && threads <= 1024;
}

void run_grid(dim3 grid, dim3 block, void (*invoke)(void*), void* closure, BlockOrder order) {
  const DeviceAccess access;
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
  for (const auto number : blocks) {
    blockIdx = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                static_cast<unsigned>(number / grid.x / grid.y)};
    run_block();
  }
}

}  // namespace espalier_emulation
