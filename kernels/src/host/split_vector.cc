#include "host/split_vector.h"
#include "host/split_scalar.h"
namespace grouped { namespace GROUPED_ISA {
void compute_split(const Call& call, i32 split, Scratch* scratch) { compute_split_scalar(call, split, scratch); }
} }
