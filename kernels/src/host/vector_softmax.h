// The online softmax on vectors of lanes, and the probabilities as pairs of halves.
#pragma once

#include "grouped/partial.h"
#include "host/vector_tile.h"

namespace grouped {
namespace GROUPED_ISA {
namespace {

// A magnitude rounded to fp16, as fp32 bits. Not for infinity, NaN or what rounds to infinity.
GROUPED_HD u32 rounded_to_half(u32 magnitude) {
  const u32 normal = (magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) & ~0x1FFFu;
  const float subnormal = (bits_float(magnitude) + 0.5f) - 0.5f;  // an ulp of 2^-24, as subnormal halves have
  return magnitude < 0x38800000u ? float_bits(subnormal) : normal;
}

GROUPED_HD i8 half_exponent_of(u32 magnitude) {
  const i32 exponent = normal_exponent(magnitude);
  return i8(magnitude != 0 && exponent < -14 ? -14 : exponent);
}

// scores -> new maxima; `old_max` keeps the ones before the tile.
void update_max(const i32* row_len, const Tile& tile, Softmax* s, float* old_max) {
  float tile_max[kMaxLanes];
  i32 nan[kMaxLanes];
  for (i32 lane = 0; lane < s->width; ++lane) {
    tile_max[lane] = negative_infinity();
    nan[lane] = 0;
  }
  for (i32 i = 0; i < kTileTokens; ++i) {
    for (i32 lane = 0; lane < s->width; ++lane) {
      const i32 live = tile.first_token + i < row_len[lane];
      const float score = s->score[i][lane];
      nan[lane] |= live & i32(is_nan(score));
      tile_max[lane] = (live != 0) & (score > tile_max[lane]) ? score : tile_max[lane];
    }
  }
  for (i32 lane = 0; lane < s->width; ++lane) {
    const float old = s->max[lane];
    const float found = nan[lane] ? nan_value() : tile_max[lane];
    const float next = next_max(tile.first, old, found);
    old_max[lane] = old;
    s->max[lane] = tile.first_token < row_len[lane] ? next : old;
  }
}

void compute_probabilities(const i32* row_len, const Tile& tile, Softmax* s) {
  for (i32 i = 0; i < kTileTokens; ++i) {
    for (i32 lane = 0; lane < s->width; ++lane) {
      const float p = clamped_exp(sub(s->score[i][lane], s->max[lane]));
      s->score[i][lane] = tile.first_token + i < row_len[lane] ? p : 0.0f;
    }
  }
}

void sum_tree(Softmax* s) {
  for (i32 i = 0; i < kTileTokens; i += 2) {
    for (i32 lane = 0; lane < s->width; ++lane) {
      s->tree[i][lane] = s->score[i][lane] + s->score[i + 1][lane];
    }
  }
  for (i32 stride = 2; stride < kTileTokens; stride *= 2) {
    for (i32 i = 0; i < kTileTokens; i += 2 * stride) {
      for (i32 lane = 0; lane < s->width; ++lane) s->tree[i][lane] += s->tree[i + stride][lane];
    }
  }
}

void update_sum(const i32* row_len, const Tile& tile, const float* old_max, Softmax* s) {
  sum_tree(s);
  for (i32 lane = 0; lane < s->width; ++lane) {
    s->tile_sum[lane] = s->tree[0][lane];
    s->rescale[lane] = rescale_factor(old_max[lane], s->max[lane]);
    const float next = next_sum(tile.first, s->sum[lane], s->rescale[lane], s->tile_sum[lane]);
    s->sum[lane] = tile.first_token < row_len[lane] ? next : s->sum[lane];
  }
}

void split_probabilities(Softmax* s) {
  for (i32 i = 0; i < kTileTokens; ++i) {
    for (i32 lane = 0; lane < s->width; ++lane) {
      const float p = s->score[i][lane];
      const u32 high = rounded_to_half(float_bits(p));
      const u32 rest = float_bits((p - bits_float(high)) * 2048.0f);
      const u32 low = rounded_to_half(rest & 0x7FFFFFFFu);
      s->high[i][lane] = bits_float(high);
      s->low[i][lane] = bits_float((rest & 0x80000000u) | low) * 0x1p-11f;
      s->high_exponent[i][lane] = half_exponent_of(high);
      s->low_exponent[i][lane] = half_exponent_of(low);
    }
  }
}

void update_softmax(const Call& call, const Tile& tile, Softmax* s) {
  float old_max[kMaxLanes];
  update_max(call.query.row_len, tile, s, old_max);
  compute_probabilities(call.query.row_len, tile, s);
  update_sum(call.query.row_len, tile, old_max, s);
  split_probabilities(s);
}

}  // namespace
}  // namespace GROUPED_ISA
}  // namespace grouped
