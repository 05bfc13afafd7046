// Tensor-core products of 16 rows by 8 columns over 16 k, and who holds what: sm_80 and later.
#pragma once

#include "cuda/convert.cuh"

namespace grouped {

struct MmaM16N8K16 {
  static constexpr i32 columns = 8;
  static constexpr i32 elements = 4;      // of an accumulator, per lane
  static constexpr i32 value_words = 4;   // words of codes that a lane reads for 16 tokens by 32 dimensions
  static constexpr i32 value_blocks = 4;  // products that cover 32 dimensions

  struct Left {
    u32 x[4];
  };
  struct Right {
    u32 x[2];
  };
  struct Sum {
    float x[4];
  };

  static __device__ i32 group(i32 lane) { return lane >> 2; }
  static __device__ i32 member(i32 lane) { return lane & 3; }

  static __device__ i32 row(i32 lane, i32 element) { return group(lane) + 8 * (element >> 1); }
  static __device__ i32 column(i32 lane, i32 element) { return 2 * member(lane) + (element & 1); }

  static __device__ __forceinline__ Sum multiply(const Left& a, const Right& b, const Sum& c) {
    Sum d;
    mma_m16n8k16(d.x, a.x, b.x, c.x);
    return d;
  }

  static __device__ __forceinline__ Sum multiply_keys(const Left& a, const Right& b, const Sum& c) {
    return multiply(a, b, c);
  }

#if GROUPED_SM >= 90
  // One group of 16: the order of k inside it changes nothing, so a lane takes four neighbours of q and k.
  static __device__ __forceinline__ Left query(const u16* rows, i32 stride, i32 step, i32 lane) {
    const u16* from = rows + group(lane) * stride + step * 16 + 4 * member(lane);
    const uint2 upper = *reinterpret_cast<const uint2*>(from);
    const uint2 lower = *reinterpret_cast<const uint2*>(from + 8 * stride);
    return Left{{upper.x, lower.x, upper.y, lower.y}};
  }

  static __device__ __forceinline__ Right keys(const u8* tokens, i32 stride, i32 step, i32 lane) {
    const u8* from = tokens + group(lane) * stride + step * 16 + 4 * member(lane);
    const HalfPairs halves = key_halves(*reinterpret_cast<const u32*>(from));
    return Right{{halves.low, halves.high}};
  }
#else
  // Two groups of 8, so k keeps its order.
  static __device__ __forceinline__ Left query(const u16* rows, i32 stride, i32 step, i32 lane) {
    const u16* from = rows + group(lane) * stride + step * 16 + 2 * member(lane);
    const u16* below = from + 8 * stride;
    return Left{{word(from), word(below), word(from + 8), word(below + 8)}};
  }

  static __device__ __forceinline__ Right keys(const u8* tokens, i32 stride, i32 step, i32 lane) {
    const u8* from = tokens + group(lane) * stride + step * 16 + 2 * member(lane);
    const u32 first = *reinterpret_cast<const u16*>(from);
    const u32 second = *reinterpret_cast<const u16*>(from + 8);
    const HalfPairs halves = key_halves(first | second << 16);
    return Right{{halves.low, halves.high}};
  }

  static __device__ __forceinline__ u32 word(const u16* from) { return *reinterpret_cast<const u32*>(from); }
#endif

  static __device__ __forceinline__ Left probabilities(const u16* rows, i32 stride, i32 step, i32 lane) {
    const u16* from = rows + (lane & 15) * stride + step * 16 + 8 * (lane >> 4);
    Left a;
    load_matrices(a.x, from);
    return a;
  }

  // A lane's words hold dimensions 4 * group .. + 3: column n of block b is dimension 4 * n + b of the 32.
  static __device__ i32 value_token(i32 lane, i32 index) {
    return 2 * member(lane) + (index & 1) + 8 * (index >> 1);
  }
  static __device__ i32 value_dim(i32 lane, i32) { return 4 * group(lane); }
  static __device__ i32 sum_dim(i32 lane, i32 block, i32 element) {
    return 4 * column(lane, element) + block;
  }

  struct Values {
    Right high[value_blocks];
    Right low[value_blocks];  // divided by 2048
  };

  static __device__ __forceinline__ Values values(const u32 (&words)[value_words]) {
    Values result;
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      const u32 first = words[2 * half], second = words[2 * half + 1];
#pragma unroll
      for (i32 pair = 0; pair < 2; ++pair) {
        const u32 interleaved = __byte_perm(first, second, pair ? 0x7362 : 0x5140);
        const HalfPairs high = value_halves(interleaved), low = residual_halves(high);
        result.high[2 * pair].x[half] = high.low;
        result.high[2 * pair + 1].x[half] = high.high;
        result.low[2 * pair].x[half] = low.low;
        result.low[2 * pair + 1].x[half] = low.high;
      }
    }
    return result;
  }

  // The lane's two rows of 8 neighbouring dimensions each.
  template <typename Store>
  static __device__ __forceinline__ void store(const Sum (&sums)[value_blocks], i32 lane, Store store_four) {
#pragma unroll
    for (i32 element = 0; element < elements; ++element) {
      store_four(row(lane, element), sum_dim(lane, 0, element),
                 make_float4(sums[0].x[element], sums[1].x[element], sums[2].x[element], sums[3].x[element]));
    }
  }
};

}  // namespace grouped
