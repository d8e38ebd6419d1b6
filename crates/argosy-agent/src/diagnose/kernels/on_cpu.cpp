// Runs the kernels of `kernels.cu` on a CPU, thread by thread, and compares their hashes with those that
// `reference.rs` makes. `scripts/ptx --on-cpu` compiles and runs it: a change of a kernel can be checked
// on a machine without a GPU. Slow, and small on purpose.
//
// Each CUDA thread is a fibre. A barrier hands over to the next one; an instruction of a whole warp waits
// until its 32 fibres have come to it, and is then carried out as the PTX manual describes its fragments.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __restrict__
#define __CUDA_ARCH__ 800

struct dim { unsigned x, y, z; };
static dim threadIdx, blockIdx, blockDim, gridDim;
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static unsigned __float_as_uint(float value) { unsigned bits; memcpy(&bits, &value, 4); return bits; }
template <class T> void atomicAdd(T *at, T value) { *at += value; }
template <class T> void atomicMin(T *at, T value) { if (value < *at) *at = value; }
template <class T> void atomicOr(T *at, T value) { *at |= value; }
template <class T> T __ldcs(const T *from) { return *from; }
template <class T> void __stcs(T *to, T value) { *to = value; }

enum State { RUNNING, AT_BARRIER, IN_WARP, DONE };
struct Fibre { ucontext_t context; char *stack; State state; };
struct Warped { float *c; const unsigned *a, *b; unsigned *out; const void *from; bool load; };
static const int THREADS = 256, STACK = 65536;
static Fibre fibres[THREADS];
static Warped warped[THREADS];
static ucontext_t scheduler;
static int current;
static std::function<void()> body;

static void hand_over(State state) {
    int own = current;
    fibres[own].state = state;
    swapcontext(&fibres[own].context, &scheduler);
}
static void __syncthreads() { hand_over(AT_BARRIER); }
static void copy_async(void *to, const void *from) { memcpy(to, from, 16); }
static void close_copies() {}
static void wait_copies() {}
static void load_four(unsigned *out, const void *from) {
    warped[current] = {nullptr, nullptr, nullptr, out, from, true};
    hand_over(IN_WARP);
}
static void multiply_add(float *c, const unsigned *a, const unsigned *b) {
    warped[current] = {c, a, b, nullptr, nullptr, false};
    hand_over(IN_WARP);
}

static float half_of(unsigned word, int upper) {
    unsigned bits = upper ? word & 0xffff0000u : word << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static void carry_out(Warped *lanes) {
    if (lanes[0].load) {
        for (int matrix = 0; matrix < 4; matrix++)
            for (int lane = 0; lane < 32; lane++)
                lanes[lane].out[matrix] = ((const unsigned *)lanes[matrix * 8 + lane / 4].from)[lane % 4];
        return;
    }
    float a[16][16], b[16][8], c[16][8];
    for (int lane = 0; lane < 32; lane++) {
        int group = lane / 4, member = lane % 4;
        for (int upper = 0; upper < 2; upper++) {
            for (int r = 0; r < 4; r++)
                a[group + (r & 1) * 8][member * 2 + upper + (r >> 1) * 8] = half_of(lanes[lane].a[r], upper);
            for (int r = 0; r < 2; r++) b[member * 2 + upper + r * 8][group] = half_of(lanes[lane].b[r], upper);
        }
        for (int e = 0; e < 4; e++) c[group + (e >> 1) * 8][member * 2 + (e & 1)] = lanes[lane].c[e];
    }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++)
            for (int k = 0; k < 16; k++) c[i][j] += a[i][k] * b[k][j];
    for (int lane = 0; lane < 32; lane++)
        for (int e = 0; e < 4; e++) lanes[lane].c[e] = c[lane / 4 + (e >> 1) * 8][(lane % 4) * 2 + (e & 1)];
}

static void enter() {
    body();
    fibres[current].state = DONE;
    swapcontext(&fibres[current].context, &scheduler);
}

static void run_block() {
    for (auto &fibre : fibres) {
        if (!fibre.stack) fibre.stack = (char *)malloc(STACK);
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack;
        fibre.context.uc_stack.ss_size = STACK;
        makecontext(&fibre.context, enter, 0);
        fibre.state = RUNNING;
    }
    for (;;) {
        int ended = 0, waiting = 0;
        for (int i = 0; i < THREADS; i++)
            if (fibres[i].state == RUNNING) {
                current = i;
                threadIdx = {(unsigned)i, 0, 0};
                swapcontext(&scheduler, &fibres[i].context);
            }
        for (int warp = 0; warp < THREADS / 32; warp++) {
            int there = 0;
            for (int lane = 0; lane < 32; lane++) there += fibres[warp * 32 + lane].state == IN_WARP;
            if (there == 0) continue;
            if (there != 32) { puts("a warp is divided at an instruction of all its lanes"); exit(1); }
            carry_out(warped + warp * 32);
            for (int lane = 0; lane < 32; lane++) fibres[warp * 32 + lane].state = RUNNING;
        }
        for (auto &fibre : fibres) {
            ended += fibre.state == DONE;
            waiting += fibre.state == AT_BARRIER;
        }
        if (ended == THREADS) return;
        if (ended + waiting == THREADS)
            for (auto &fibre : fibres)
                if (fibre.state == AT_BARRIER) fibre.state = RUNNING;
    }
}

static void launch(unsigned x, unsigned y, std::function<void()> kernel) {
    body = kernel;
    gridDim = {x, y, 1};
    blockDim = {THREADS, 1, 1};
    for (blockIdx.y = 0; blockIdx.y < y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < x; blockIdx.x++) run_block();
}

// `kernels.cu` without its inline PTX, which stands above.
#include "kernels.inc"

static int failures = 0;
static void expect(const char *what, u64 found, u64 wanted) {
    printf("%-34s %016llx %s\n", what, found, found == wanted ? "as it must be" : "WRONG");
    failures += found != wanted;
}

// The hash of a product made with plain loops of our own, eight rows and 64 columns at a time.
static u64 hash_of_plain_product(u64 edge, bool whole) {
    std::vector<float> a(edge * edge), b(edge * edge);
    for (u64 i = 0; i < edge * edge; i++) {
        u64 transposed = i % edge * edge + i / edge;
        if (whole) {
            a[i] = (float)((int)((draw(3, i) >> 33) % 127) - 63);
            b[transposed] = (float)((int)((draw(4, i) >> 33) % 127) - 63);
        } else {
            a[i] = (float)((int)(draw(1, i) >> 40) - (1 << 23)) / 8388608.0f;
            b[i] = (float)((int)(draw(2, i) >> 40) - (1 << 23)) / 8388608.0f;
        }
    }
    u64 hash = 0;
    for (u64 row = 0; row < edge; row += 8)
        for (u64 column = 0; column < edge; column += 64) {
            float sum[8][64] = {};
            for (u64 k = 0; k < edge; k++)
                for (int i = 0; i < 8; i++)
                    for (int j = 0; j < 64; j++)
                        sum[i][j] = __builtin_fmaf(a[(row + i) * edge + k], b[k * edge + column + j], sum[i][j]);
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 64; j++)
                    hash += mix64(((row + i) * edge + column + j) << 32 ^ __float_as_uint(sum[i][j]) ^
                                  0x6a09e667f3bcc909ull);
        }
    return hash;
}

int main(int count_of_words, char **) {
    if (1 < count_of_words) {
        // The constants of `reference.rs`; half a minute.
        expect("product of floats, edge 4096", hash_of_plain_product(4096, false), 0xbd67d264db07436eull);
        expect("product of bfloat16, edge 4096", hash_of_plain_product(4096, true), 0x367c23080b0fb8f8ull);
        return failures != 0;
    }
    const u64 edge = 256, count = edge * edge;
    std::vector<float> a(count), b(count), c(count);
    std::vector<u16> left(count), right(count);
    u64 hash = 0;
    launch(3, 1, [&] { generate_f32(a.data(), count, 1); });
    launch(3, 1, [&] { generate_f32(b.data(), count, 2); });
    launch(2, 2, [&] { product_f32(a.data(), b.data(), c.data(), edge); });
    launch(5, 1, [&] { hash_words((u32 *)c.data(), count, &hash); });
    expect("product of floats", hash, 0x7e33c95997a78901ull);
    launch(3, 1, [&] { generate_bf16(left.data(), count, 3); });
    launch(3, 1, [&] { generate_bf16(right.data(), count, 4); });
    launch(2, 2, [&] { product_bf16(left.data(), right.data(), c.data(), edge); });
    hash = 0;
    launch(5, 1, [&] { hash_words((u32 *)c.data(), count, &hash); });
    expect("product of bfloat16", hash, 0xfa9fd5ec43830271ull);

    std::vector<u64> words(100000);
    for (u32 pattern = 0; pattern < 3; pattern++) {
        u64 report[3] = {0, ~0ull, 0};
        launch(7, 1, [&] { fill(words.data(), words.size(), pattern, 5, 0); });
        launch(7, 1, [&] { check(words.data(), words.size(), pattern, 5, 0, report); });
        expect("wrong words of a pattern", report[0], 0);
        words[4321] ^= 8, words[9999] ^= 2;
        launch(7, 1, [&] { check(words.data(), words.size(), pattern, 5, ~0ull, report); });
        expect("  after two bits were flipped", report[0], 2);
        expect("  the first of them", report[1], 4321);
        expect("  the bits", report[2], 10);
    }
    // Not a multiple of what a block copies.
    std::vector<uint4> from(100003), to(100003), again(100003);
    for (size_t i = 0; i < from.size(); i++) from[i] = {(unsigned)i, 1, 2, 3};
    launch(7, 1, [&] { copy_wide(from.data(), to.data(), from.size()); });
    launch(7, 1, [&] { copy_stream(from.data(), again.data(), from.size()); });
    expect("bytes that a copy changed", memcmp(from.data(), to.data(), from.size() * 16) != 0, 0);
    expect("  and the streaming one", memcmp(from.data(), again.data(), from.size() * 16) != 0, 0);
    return failures != 0;
}
