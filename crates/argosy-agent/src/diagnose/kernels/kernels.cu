// The kernels of the diagnostics. `scripts/ptx` compiles this file; the PTX is committed beside it.
//
// Every number here is the same on every GPU and on a CPU: floats go through fused multiply-adds in one
// order (`product_f32`), or are whole numbers small enough for any order (`product_bf16`). So the hash
// of a product is known before it is made, and `reference.rs` can make it without a GPU.

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

// -- numbers ------------------------------------------------------------------------------------------

// The finalizer of splitmix64.
static __device__ __forceinline__ u64 mix64(u64 x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// The `index`-th number of the stream `seed`.
static __device__ __forceinline__ u64 draw(u64 seed, u64 index) {
    return mix64(seed + (index + 1) * 0x9e3779b97f4a7c15ull);
}

// -- matrix products ----------------------------------------------------------------------------------

// A number in [-1, 1) with 24 bits, for each element.
extern "C" __global__ void generate_f32(float *out, u64 count, u64 seed) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        int whole = (int)(draw(seed, i) >> 40) - (1 << 23);
        out[i] = (float)whole * (1.0f / 8388608.0f);
    }
}

// A whole number from -63 to 63, for each element. bfloat16 is the upper half of a float, and holds them.
extern "C" __global__ void generate_bf16(u16 *out, u64 count, u64 seed) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        int whole = (int)((draw(seed, i) >> 33) % 127) - 63;
        out[i] = (u16)(__float_as_uint((float)whole) >> 16);
    }
}

// c = a * b, all row by row, size x size; size is a multiple of 128. Each element is one chain of fused
// multiply-adds with k going up. Blocks of 256 threads, one for each 128 x 128 tile; 8 x 8 elements a thread.
extern "C" __global__ void __launch_bounds__(256, 2)
product_f32(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, u32 size) {
    __shared__ __align__(16) float a_tile[2][8][132];
    __shared__ __align__(16) float b_tile[2][8][128];
    u32 t = threadIdx.x;
    u32 a_row = t / 2, a_column = (t % 2) * 4;
    u32 b_row = t / 32, b_column = (t % 32) * 4;
    u32 y = (t / 16) * 4, x = (t % 16) * 4;
    const float *a_from = a + (u64)(blockIdx.y * 128 + a_row) * size + a_column;
    const float *b_from = b + (u64)b_row * size + blockIdx.x * 128 + b_column;

    float sum[8][8];
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sum[i][j] = 0.0f;

    float4 a_next = *(const float4 *)a_from;
    float4 b_next = *(const float4 *)b_from;
    a_tile[0][a_column + 0][a_row] = a_next.x;
    a_tile[0][a_column + 1][a_row] = a_next.y;
    a_tile[0][a_column + 2][a_row] = a_next.z;
    a_tile[0][a_column + 3][a_row] = a_next.w;
    *(float4 *)&b_tile[0][b_row][b_column] = b_next;
    __syncthreads();

    u32 now = 0;
    for (u32 k = 0; k < size; k += 8) {
        bool more = k + 8 < size;
        if (more) {
            a_next = *(const float4 *)(a_from + k + 8);
            b_next = *(const float4 *)(b_from + (u64)(k + 8) * size);
        }
#pragma unroll
        for (int kk = 0; kk < 8; kk++) {
            float4 a0 = *(const float4 *)&a_tile[now][kk][y];
            float4 a1 = *(const float4 *)&a_tile[now][kk][64 + y];
            float4 b0 = *(const float4 *)&b_tile[now][kk][x];
            float4 b1 = *(const float4 *)&b_tile[now][kk][64 + x];
            float left[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
            float right[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
        }
        if (more) {
            // The other half of the tiles: nobody reads it until the barrier.
            now ^= 1;
            a_tile[now][a_column + 0][a_row] = a_next.x;
            a_tile[now][a_column + 1][a_row] = a_next.y;
            a_tile[now][a_column + 2][a_row] = a_next.z;
            a_tile[now][a_column + 3][a_row] = a_next.w;
            *(float4 *)&b_tile[now][b_row][b_column] = b_next;
            __syncthreads();
        }
    }

#pragma unroll
    for (int i = 0; i < 8; i++) {
        u32 row = blockIdx.y * 128 + (i < 4 ? y + i : 64 + y + i - 4);
        float *to = c + (u64)row * size + blockIdx.x * 128;
        *(float4 *)(to + x) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        *(float4 *)(to + 64 + x) = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
    }
}

#if __CUDA_ARCH__ >= 800
// BEGIN INSTRUCTIONS
static __device__ __forceinline__ void copy_async(void *to_shared, const void *from) {
    u32 to = (u32)__cvta_generic_to_shared(to_shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All groups but the newest have arrived.
static __device__ __forceinline__ void wait_copies() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

static __device__ __forceinline__ void load_four(u32 *out, const void *from_shared) {
    u32 from = (u32)__cvta_generic_to_shared(from_shared);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from) : "memory");
}

static __device__ __forceinline__ void multiply_add(float *c, const u32 *a, const u32 *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// END INSTRUCTIONS

// Where 16 bytes of a tile of 128 rows of 64 bytes are kept: the eight rows of one `ldmatrix` fall on
// different banks.
static __device__ __forceinline__ u32 place(u32 row, u32 chunk) {
    return row * 64 + ((chunk ^ ((row >> 1) & 3)) * 16);
}

static __device__ __forceinline__ void fetch_tile(char *tile, const u16 *from, u32 size, u32 k) {
    u32 row = threadIdx.x / 4, chunk = threadIdx.x % 4;
    const u16 *source = from + (u64)row * size + k + chunk * 8;
    copy_async(tile + place(row, chunk), source);
    copy_async(tile + place(row + 64, chunk), source + (u64)64 * size);
}

// c = a * b on the tensor cores; `b` is given column by column; size is a multiple of 128. Blocks of 256
// threads, one for each 128 x 128 tile: eight warps, each 64 x 32. Three stages of 32 columns.
extern "C" __global__ void __launch_bounds__(256, 2)
product_bf16(const u16 *__restrict__ a, const u16 *__restrict__ b, float *__restrict__ c, u32 size) {
    __shared__ __align__(128) char a_tile[3][8192];
    __shared__ __align__(128) char b_tile[3][8192];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 y = (warp / 4) * 64, x = (warp % 4) * 32;
    const u16 *a_from = a + (u64)blockIdx.y * 128 * size;
    const u16 *b_from = b + (u64)blockIdx.x * 128 * size;

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[i][j][e] = 0.0f;

    u32 steps = size / 32;
    for (u32 s = 0; s < 2; s++) {
        fetch_tile(a_tile[s], a_from, size, s * 32);
        fetch_tile(b_tile[s], b_from, size, s * 32);
        close_copies();
    }
    u32 now = 0, next = 2;
    for (u32 s = 0; s < steps; s++) {
        wait_copies();
        __syncthreads();
        if (s + 2 < steps) {
            fetch_tile(a_tile[next], a_from, size, (s + 2) * 32);
            fetch_tile(b_tile[next], b_from, size, (s + 2) * 32);
        }
        close_copies();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 left[4][4], right[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                load_four(left[i], a_tile[now] + place(y + i * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < 2; j++)
                load_four(right[j], b_tile[now] + place(x + j * 16 + lane % 8 + (lane / 16) * 8,
                                                        half * 2 + (lane / 8) % 2));
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) multiply_add(sum[i][j], left[i], &right[j / 2][(j % 2) * 2]);
        }
        now = now == 2 ? 0 : now + 1;
        next = next == 2 ? 0 : next + 1;
    }

    u32 row = blockIdx.y * 128 + y + lane / 4, column = blockIdx.x * 128 + x + (lane % 4) * 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float *to = c + (u64)(row + i * 16) * size + column + j * 8;
            *(float2 *)to = make_float2(sum[i][j][0], sum[i][j][1]);
            *(float2 *)(to + (u64)8 * size) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
}
#endif

// Adds the hash of `words` to `*sum`. A sum, so that blocks may end in any order.
extern "C" __global__ void hash_words(const u32 *words, u64 count, u64 *sum) {
    u64 own = 0;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        own += mix64((i << 32) ^ words[i] ^ 0x6a09e667f3bcc909ull);
    __shared__ u64 parts[256];
    parts[threadIdx.x] = own;
    __syncthreads();
    for (u32 half = 128; 0 < half; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(sum, parts[0]);
}

// What a fault would do: one bit of one word is another.
extern "C" __global__ void flip_bit(u32 *words, u64 at, u32 bit) { words[at] ^= 1u << bit; }

// -- memory -------------------------------------------------------------------------------------------

// What the `index`-th word of 8 bytes must hold. Patterns as in `memory.rs`: 0 a walking one, 1 its own
// address, 2 pseudo-random; the inverse of each with `flip` all ones.
static __device__ __forceinline__ u64 wanted(u32 pattern, u64 seed, u64 flip, u64 address, u64 index) {
    u64 plain = pattern == 0 ? 1ull << ((index + seed) & 63) : pattern == 1 ? address + index * 8 : draw(seed, index);
    return plain ^ flip;
}

// Writes a pattern. `count` is in words of 8 bytes, and even.
extern "C" __global__ void fill(u64 *words, u64 count, u32 pattern, u64 seed, u64 flip) {
    u64 address = (u64)words;
    u64 step = (u64)gridDim.x * blockDim.x * 2;
    for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 2; i < count; i += step) {
        ulonglong2 pair;
        pair.x = wanted(pattern, seed, flip, address, i);
        pair.y = wanted(pattern, seed, flip, address, i + 1);
        *(ulonglong2 *)(words + i) = pair;
    }
}

static __device__ void complain(u64 *report, u64 index, u64 found, u64 expected) {
    atomicAdd(&report[0], 1ull);
    atomicMin(&report[1], index);
    atomicOr(&report[2], found ^ expected);
}

// Compares with a pattern and leaves the inverse, so that the next look sees the other value of each bit.
// report: count of wrong words, index of the first, all bits that were wrong.
extern "C" __global__ void check(u64 *words, u64 count, u32 pattern, u64 seed, u64 flip, u64 *report) {
    u64 address = (u64)words;
    u64 step = (u64)gridDim.x * blockDim.x * 2;
    for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 2; i < count; i += step) {
        ulonglong2 pair = *(const ulonglong2 *)(words + i);
        u64 first = wanted(pattern, seed, flip, address, i);
        u64 second = wanted(pattern, seed, flip, address, i + 1);
        if (pair.x != first) complain(report, i, pair.x, first);
        if (pair.y != second) complain(report, i + 1, pair.y, second);
        pair.x = ~first;
        pair.y = ~second;
        *(ulonglong2 *)(words + i) = pair;
    }
}

// -- bandwidth ----------------------------------------------------------------------------------------

// One block copies 16 kB after the other: 16 bytes a thread, four in flight. `count` is in units of 16 bytes.
extern "C" __global__ void copy_wide(const uint4 *__restrict__ from, uint4 *__restrict__ to, u64 count) {
    for (u64 base = (u64)blockIdx.x * 1024; base < count; base += (u64)gridDim.x * 1024) {
        u64 i = base + threadIdx.x;
        if (base + 1024 <= count) {
            uint4 one = from[i], two = from[i + 256], three = from[i + 512], four = from[i + 768];
            to[i] = one;
            to[i + 256] = two;
            to[i + 512] = three;
            to[i + 768] = four;
        } else {
            for (; i < count; i += 256) to[i] = from[i];
        }
    }
}

// The same, and tells the caches that nothing is used twice.
extern "C" __global__ void copy_stream(const uint4 *__restrict__ from, uint4 *__restrict__ to, u64 count) {
    for (u64 base = (u64)blockIdx.x * 1024; base < count; base += (u64)gridDim.x * 1024) {
        u64 i = base + threadIdx.x;
        if (base + 1024 <= count) {
            uint4 one = __ldcs(from + i), two = __ldcs(from + i + 256);
            uint4 three = __ldcs(from + i + 512), four = __ldcs(from + i + 768);
            __stcs(to + i, one);
            __stcs(to + i + 256, two);
            __stcs(to + i + 512, three);
            __stcs(to + i + 768, four);
        } else {
            for (; i < count; i += 256) to[i] = from[i];
        }
    }
}
