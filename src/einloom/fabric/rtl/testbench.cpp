// Runs one operation after the other on the fabric: testbench JOBS ANSWERS.
// JOBS: per operation eight words (operation, configuration, steps, more steps, tiles, shift, cycles, 0), then per cycle
// the words of left, left_psum and top. ANSWERS: per operation the number of cycles that the fabric was busy, then per
// cycle of JOBS the words of right_psum. All words have 32 bits, the low one first.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

#include "Vfabric.h"
#include "verilated.h"

template <typename Port>
static void put(Port& port, const uint32_t* words, int count) {
  if constexpr (std::is_integral_v<Port>) {
    uint64_t value = 0;
    for (int i = 0; i < count && i < 2; ++i) value |= uint64_t(words[i]) << (32 * i);
    port = static_cast<Port>(value);
  } else {
    std::memcpy(&port[0], words, 4 * count);
  }
}

template <typename Port>
static void get(const Port& port, uint32_t* words, int count) {
  if constexpr (std::is_integral_v<Port>) {
    for (int i = 0; i < count; ++i) words[i] = uint32_t(uint64_t(port) >> (32 * i));
  } else {
    std::memcpy(words, &port[0], 4 * count);
  }
}

static VerilatedContext context;
static Vfabric fabric(&context);

static void tick() {
  fabric.clk = 1;
  fabric.eval();
  fabric.clk = 0;
  fabric.eval();
}

static void feed(const uint32_t* words) {
  put(fabric.left, words, LEFT_WORDS);
  put(fabric.left_psum, words + LEFT_WORDS, PSUM_WORDS);
  put(fabric.top, words + LEFT_WORDS + PSUM_WORDS, TOP_WORDS);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  FILE* jobs = std::fopen(argv[1], "rb");
  FILE* answers = std::fopen(argv[2], "wb");
  if (!jobs || !answers) return 2;
  const int width = LEFT_WORDS + PSUM_WORDS + TOP_WORDS;
  std::vector<uint32_t> quiet(width, 0), row(width), seen(PSUM_WORDS);
  uint32_t head[8];
  feed(quiet.data());
  fabric.start = 0;
  fabric.rst = 1;
  tick();
  fabric.rst = 0;
  for (int i = 0; i < FLUSH; ++i) tick();
  while (std::fread(head, 4, 8, jobs) == 8) {
    fabric.operation = head[0];
    fabric.configuration = head[1];
    fabric.steps = head[2];
    fabric.more_steps = head[3];
    fabric.tiles = head[4];
    fabric.shift = head[5];
    fabric.start = 1;
    feed(quiet.data());
    fabric.eval();
    tick();
    fabric.start = 0;
    std::vector<uint32_t> kept;
    uint32_t cycle = 0;
    const uint32_t planned = head[6], most = 2 * planned + 1000;
    for (; cycle < planned || (fabric.busy && cycle < most); ++cycle) {
      if (!fabric.busy) break;
      if (cycle < planned) {
        if (std::fread(row.data(), 4, width, jobs) != size_t(width)) return 3;
        feed(row.data());
      } else {
        feed(quiet.data());
      }
      fabric.eval();
      if (cycle < planned) {
        get(fabric.right_psum, seen.data(), PSUM_WORDS);
        kept.insert(kept.end(), seen.begin(), seen.end());
      }
      tick();
    }
    for (uint32_t i = cycle; i < planned; ++i) {  // it stopped too early: skip what was meant for later
      if (std::fread(row.data(), 4, width, jobs) != size_t(width)) return 3;
    }
    kept.resize(size_t(planned) * PSUM_WORDS, 0);
    std::fwrite(&cycle, 4, 1, answers);
    std::fwrite(kept.data(), 4, kept.size(), answers);
  }
  std::fclose(jobs);
  std::fclose(answers);
  return 0;
}
