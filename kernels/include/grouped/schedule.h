// Which tiles each split owns: a function of (architecture's splits, longest live row) alone.
#pragma once

#include "grouped/arch.h"
#include "grouped/platform.h"

namespace grouped {

struct TileRange {
  i32 begin;
  i32 end;
};

GROUPED_HD bool row_is_live(i32 length, i32 capacity) { return length > 0 && length <= capacity; }

GROUPED_HD i32 tile_count(i32 longest) { return longest / kTileTokens + (longest % kTileTokens != 0); }

GROUPED_HD i32 active_splits(i32 longest, i32 splits) {
  if (longest <= 128) return 1;
  const i32 wanted = longest / 64 + (longest % 64 != 0);
  return wanted < splits ? wanted : splits;
}

// The first (tiles mod active) splits own one tile more. Empty for split >= active.
GROUPED_HD TileRange split_tiles(i32 longest, i32 splits, i32 split) {
  const i32 tiles = tile_count(longest);
  const i32 active = active_splits(longest, splits);
  if (split >= active) return TileRange{tiles, tiles};
  const i32 each = tiles / active;
  const i32 extra = tiles % active;
  const i32 begin = split * each + (split < extra ? split : extra);
  return TileRange{begin, begin + each + (split < extra)};
}

}  // namespace grouped
