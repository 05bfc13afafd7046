// Tensor-core products of sm_70: its 8 by 8 by 4 instruction, which works on four matrices at a time. The
// four are laid out as 16 rows by 16 columns, and 16 k are four instructions in ascending order, each with
// the previous result as its accumulator.
#pragma once

#include "cuda/convert.cuh"

namespace grouped {

struct MmaM8N8K4 {
  static constexpr i32 columns = 16;
  static constexpr i32 elements = 8;      // of an accumulator, per lane
  static constexpr i32 value_words = 8;   // words of codes that a lane reads for 16 tokens by 32 dimensions
  static constexpr i32 value_blocks = 2;  // products that cover 32 dimensions

  // Two registers for each of the four instructions.
  struct Left {
    u32 x[8];
  };
  struct Right {
    u32 x[8];
  };
  struct Sum {
    float x[8];
  };

  // Lanes 4m..4m+3 and 4m+16..4m+19 work on matrix m: rows 8 * (m & 1), columns 8 * (m >> 1).
  static __device__ i32 first_row(i32 lane) { return 8 * ((lane >> 2) & 1); }
  static __device__ i32 first_column(i32 lane) { return 8 * ((lane >> 3) & 1); }
  static __device__ i32 member(i32 lane) { return (lane & 3) + 4 * (lane >> 4); }

  static __device__ i32 row(i32 lane, i32 element) {
    return first_row(lane) + (lane & 1) + (element & 2) + 4 * (lane >> 4);
  }
  static __device__ i32 column(i32 lane, i32 element) {
    return first_column(lane) + (element & 4) + (lane & 2) + (element & 1);
  }

  // Values: a lane holds four dimensions of one token.
  static __device__ __forceinline__ Sum multiply(const Left& a, const Right& b, Sum c) {
#pragma unroll
    for (i32 k = 0; k < 8; k += 2) mma_m8n8k4<true>(c.x, a.x[k], a.x[k + 1], b.x[k], b.x[k + 1]);
    return c;
  }

  // Keys: a lane holds four dimensions of one token too, and they are k.
  static __device__ __forceinline__ Sum multiply_keys(const Left& a, const Right& b, Sum c) {
#pragma unroll
    for (i32 k = 0; k < 8; k += 2) mma_m8n8k4<false>(c.x, a.x[k], a.x[k + 1], b.x[k], b.x[k + 1]);
    return c;
  }

  static __device__ __forceinline__ Left sixteen_halves(const u16* from) {
    const uint4 first = *reinterpret_cast<const uint4*>(from);
    const uint4 second = *reinterpret_cast<const uint4*>(from + 8);
    return Left{{first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w}};
  }

  static __device__ __forceinline__ Left query(const u16* rows, i32 stride, i32 step, i32 lane) {
    return sixteen_halves(rows + (first_row(lane) + member(lane)) * stride + step * 16);
  }

  static __device__ __forceinline__ Left probabilities(const u16* rows, i32 stride, i32 step, i32 lane) {
    return query(rows, stride, step, lane);
  }

  static __device__ __forceinline__ Right keys(const u8* tokens, i32 stride, i32 step, i32 lane) {
    const u8* from = tokens + (first_column(lane) + member(lane)) * stride + step * 16;
    const uint4 codes = *reinterpret_cast<const uint4*>(from);
    const u32 words[4] = {codes.x, codes.y, codes.z, codes.w};
    Right b;
#pragma unroll
    for (i32 group = 0; group < 4; ++group) {
      const HalfPairs halves = key_halves(words[group]);
      b.x[2 * group] = halves.low;
      b.x[2 * group + 1] = halves.high;
    }
    return b;
  }

  // Word 2 * group + block holds four dimensions of one token: column n of block b is dimension 16 * b + n.
  static __device__ i32 value_token(i32 lane, i32 index) { return 4 * (index >> 1) + (lane & 3); }
  static __device__ i32 value_dim(i32 lane, i32 index) {
    return 16 * (index & 1) + first_column(lane) + 4 * (lane >> 4);
  }
  static __device__ i32 sum_dim(i32 lane, i32 block, i32 element) {
    return 16 * block + column(lane, element);
  }

  struct Values {
    Right high[value_blocks];
    Right low[value_blocks];  // divided by 2048
  };

  static __device__ __forceinline__ Values values(const u32 (&words)[value_words]) {
    Values result;
#pragma unroll
    for (i32 index = 0; index < value_words; ++index) {
      const HalfPairs high = value_halves(words[index]), low = residual_halves(high);
      const i32 block = index & 1, at = index & ~1;
      result.high[block].x[at] = high.low;
      result.high[block].x[at + 1] = high.high;
      result.low[block].x[at] = low.low;
      result.low[block].x[at + 1] = low.high;
    }
    return result;
  }

  template <typename Store>
  static __device__ __forceinline__ void store(const Sum (&sums)[value_blocks], i32 lane, Store store_two) {
#pragma unroll
    for (i32 block = 0; block < value_blocks; ++block) {
#pragma unroll
      for (i32 element = 0; element < elements; element += 2) {
        store_two(row(lane, element), sum_dim(lane, block, element),
                  make_float2(sums[block].x[element], sums[block].x[element + 1]));
      }
    }
  }
};

}  // namespace grouped
