#include "common/validate.h"

#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>

#include "common/float_environment.h"

namespace grouped {
namespace {

using tvm::ffi::TensorView;

struct Named {
  const char* name;
  const TensorView& tensor;
};

std::string device_text(DLDevice device) {
  std::ostringstream text;
  text << (device.device_type == kDLCPU ? "cpu" : device.device_type == kDLCUDA ? "cuda" : "device type ");
  if (device.device_type != kDLCPU && device.device_type != kDLCUDA) text << int(device.device_type);
  if (device.device_type != kDLCPU) text << ':' << device.device_id;
  return text.str();
}

std::string shape_text(const TensorView& tensor) {
  std::ostringstream text;
  text << '[';
  for (int i = 0; i < tensor.ndim(); ++i) text << (i ? ", " : "") << tensor.size(i);
  text << ']';
  return text.str();
}

std::string dtype_text(DLDataType dtype) {
  // The library that prints the others refuses complex numbers.
  if (dtype.code == kDLComplex) return "complex" + std::to_string(int(dtype.bits));
  return tvm::ffi::DLDataTypeToString(dtype);
}

std::uintptr_t address(const TensorView& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) + tensor.byte_offset();
}

template <typename T>
T* pointer(const TensorView& tensor) {
  return reinterpret_cast<T*>(address(tensor));
}

i64 item_bytes(const TensorView& tensor) { return tensor.dtype().bits / 8; }

i64 stride(const TensorView& tensor, int dim) { return tensor.stride(dim); }

void check_dtype(Named argument, int code, int bits, const char* expected) {
  const DLDataType dtype = argument.tensor.dtype();
  if (dtype.code == code && dtype.bits == bits && dtype.lanes == 1) return;
  TVM_FFI_THROW(TypeError) << argument.name << " must be " << expected << ", got " << dtype_text(dtype)
                           << ": convert it before the call";
}

void check_shape(Named argument, std::initializer_list<i64> expected, const char* words) {
  bool equal = argument.tensor.ndim() == int(expected.size());
  int dim = 0;
  for (const i64 size : expected) equal = equal && argument.tensor.size(dim++) == size;
  if (equal) return;
  TVM_FFI_THROW(ValueError) << argument.name << " must have shape " << words << ", got "
                            << shape_text(argument.tensor);
}

void check_rank(Named argument, int rank, const char* words) {
  if (argument.tensor.ndim() == rank) return;
  TVM_FFI_THROW(ValueError) << argument.name << " must have shape " << words << ", got "
                            << shape_text(argument.tensor);
}

void check_contiguous(Named argument) {
  i64 expected = 1;
  for (int dim = argument.tensor.ndim() - 1; dim >= 0; --dim) {
    const i64 size = argument.tensor.size(dim);
    if (size != 1 && stride(argument.tensor, dim) != expected) {
      TVM_FFI_THROW(ValueError) << argument.name << " must be contiguous: pass " << argument.name
                                << ".contiguous()";
    }
    expected *= size;
  }
}

void check_alignment(Named argument, std::uintptr_t bytes) {
  if (address(argument.tensor) % bytes == 0) return;
  TVM_FFI_THROW(ValueError) << argument.name << " must start at a multiple of " << bytes
                            << " bytes: copy it, or allocate it with that alignment";
}

void check_devices(const Arguments& a, DLDeviceType expected) {
  const DLDevice device = a.q.device();
  if (device.device_type != expected) {
    TVM_FFI_THROW(ValueError) << "this library runs on " << (expected == kDLCPU ? "cpu" : "cuda")
                              << " tensors, q is on " << device_text(device)
                              << ": move the tensors, or load the other backend";
  }
  const Named others[] = {
      {"k_cache", a.k_cache},         {"v_cache", a.v_cache}, {"block_table", a.block_table},
      {"row_lens", a.row_lens},       {"acc", a.acc},         {"max_sum", a.max_sum},
      {"out", a.out ? *a.out : a.acc}};
  for (const Named& other : others) {
    const DLDevice at = other.tensor.device();
    if (at.device_type == device.device_type && at.device_id == device.device_id) continue;
    TVM_FFI_THROW(ValueError) << other.name << " is on " << device_text(at) << ", q on "
                              << device_text(device) << ": all tensors must be on one device";
  }
}

void check_dtypes(const Arguments& a) {
  check_dtype({"q", a.q}, kDLFloat, 16, "float16");
  check_dtype({"k_cache", a.k_cache}, kDLUInt, 8, "uint8 (E4M3FN codes) or float8_e4m3fn");
  check_dtype({"v_cache", a.v_cache}, kDLUInt, 8, "uint8 (E4M3FN codes) or float8_e4m3fn");
  check_dtype({"block_table", a.block_table}, kDLInt, 32, "int32");
  check_dtype({"row_lens", a.row_lens}, kDLInt, 32, "int32");
  if (a.out) check_dtype({"out", *a.out}, kDLFloat, 16, "float16");
  check_dtype({"acc", a.acc}, kDLFloat, 32, "float32");
  check_dtype({"max_sum", a.max_sum}, kDLFloat, 32, "float32");
}

void read_query(const Arguments& a, Problem* problem) {
  check_rank({"q", a.q}, 3, "[rows, heads, head_dim]");
  const i64 rows = a.q.size(0), heads = a.q.size(1), head_dim = a.q.size(2);
  if (rows < kMinRows || rows > kMaxRows) {
    TVM_FFI_THROW(ValueError) << "q must have 2 to 8 rows, got " << rows;
  }
  if (!(heads == 6 && head_dim == 256) && !(heads == 3 && head_dim == 64)) {
    TVM_FFI_THROW(ValueError) << "q has " << heads << " heads of dimension " << head_dim
                              << "; this build has (6, 256) and (3, 64)";
  }
  check_contiguous({"q", a.q});
  check_alignment({"q", a.q}, 2);
  problem->rows = i32(rows);
  problem->heads = i32(heads);
  problem->head_dim = i32(head_dim);
  problem->q = pointer<const u16>(a.q);
  problem->q_aligned16 = address(a.q) % 16 == 0;
}

void check_cache_stride(Named cache, int dim, const char* what) {
  const i64 bytes = stride(cache.tensor, dim);
  if (cache.tensor.size(dim) == 1 || (bytes >= 0 && bytes % 8 == 0)) return;
  TVM_FFI_THROW(ValueError) << cache.name << " has a " << what << " stride of " << bytes
                            << " bytes; it must be a non-negative multiple of 8: repack the cache";
}

CacheStrides read_cache(Named cache, i64 head_dim, bool* aligned16) {
  const TensorView& tensor = cache.tensor;
  check_rank(cache, 4, "[blocks, page, 1, head_dim]");
  if (tensor.size(0) < 1) TVM_FFI_THROW(ValueError) << cache.name << " has no blocks";
  if (!page_is_supported(tensor.size(1))) {
    TVM_FFI_THROW(ValueError) << cache.name << " has pages of " << tensor.size(1)
                              << " tokens; this build takes "
                              << "multiples of " << kPageMultiple << " from " << kSmallestPage << " to "
                              << kLargestPage;
  }
  check_shape(cache, {tensor.size(0), tensor.size(1), 1, head_dim}, "[blocks, page, 1, head_dim of q]");
  if (stride(tensor, 3) != 1) {
    TVM_FFI_THROW(ValueError) << cache.name << " must have an inner stride of 1, got " << stride(tensor, 3);
  }
  check_cache_stride(cache, 0, "block");
  check_cache_stride(cache, 1, "token");
  check_alignment(cache, 16);
  const CacheStrides strides{tensor.size(0) == 1 ? 0 : stride(tensor, 0), stride(tensor, 1)};
  *aligned16 = strides.block_bytes % 16 == 0 && strides.token_bytes % 16 == 0;
  return strides;
}

void read_caches(const Arguments& a, Problem* problem) {
  problem->k_strides = read_cache({"k_cache", a.k_cache}, problem->head_dim, &problem->k_aligned16);
  problem->v_strides = read_cache({"v_cache", a.v_cache}, problem->head_dim, &problem->v_aligned16);
  if (a.k_cache.size(0) != a.v_cache.size(0) || a.k_cache.size(1) != a.v_cache.size(1)) {
    TVM_FFI_THROW(ValueError) << "k_cache and v_cache must have the same blocks and page size, got "
                              << shape_text(a.k_cache) << " and " << shape_text(a.v_cache);
  }
  problem->k = pointer<const u8>(a.k_cache);
  problem->v = pointer<const u8>(a.v_cache);
  problem->num_blocks = a.k_cache.size(0);
  problem->page = i32(a.k_cache.size(1));
}

void read_tables(const Arguments& a, Problem* problem) {
  check_rank({"block_table", a.block_table}, 2, "[1, entries]");
  const i64 entries = a.block_table.size(1);
  check_shape({"block_table", a.block_table}, {1, entries}, "[1, entries]: one request per call");
  if (entries < 1) TVM_FFI_THROW(ValueError) << "block_table must have at least one entry";
  if (entries > kLargestCapacity / problem->page) {
    TVM_FFI_THROW(ValueError) << "block_table addresses " << entries << " pages of " << problem->page
                              << " tokens, more than 2^30 tokens: pass a shorter table";
  }
  check_shape({"row_lens", a.row_lens}, {problem->rows}, "[rows of q]");
  for (const Named& table : {Named{"block_table", a.block_table}, Named{"row_lens", a.row_lens}}) {
    check_contiguous(table);
    check_alignment(table, 4);
  }
  problem->block_table = pointer<const i32>(a.block_table);
  problem->row_lens = pointer<const i32>(a.row_lens);
  problem->entries = i32(entries);
  problem->capacity = i32(entries * problem->page);
}

void read_outputs(const Arguments& a, i32 splits, Problem* problem) {
  const i64 heads = problem->heads, head_dim = problem->head_dim;
  const i64 acc_rows = a.out ? kMaxRows : problem->rows;
  check_shape({"acc", a.acc}, {splits, acc_rows, heads, head_dim},
              "[splits, rows (8 in a workspace), heads, head_dim]: take it from this library's workspace()");
  check_shape({"max_sum", a.max_sum}, {splits, acc_rows, heads, 2},
              "[splits, rows (8 in a workspace), heads, 2]: take it from this library's workspace()");
  for (const Named& buffer : {Named{"acc", a.acc}, Named{"max_sum", a.max_sum}}) {
    check_contiguous(buffer);
    check_alignment(buffer, 16);
  }
  problem->acc = pointer<float>(a.acc);
  problem->max_sum = pointer<float>(a.max_sum);
  problem->acc_rows = i32(acc_rows);
  if (!a.out) return;
  check_shape({"out", *a.out}, {problem->rows, heads, head_dim}, "of q");
  check_contiguous({"out", *a.out});
  check_alignment({"out", *a.out}, 2);
  problem->out = pointer<u16>(*a.out);
  problem->out_aligned16 = address(*a.out) % 16 == 0;
}

struct Extent {
  std::uintptr_t begin;
  std::uintptr_t end;
};

Extent extent(const TensorView& tensor) {
  i64 last = 0;
  for (int dim = 0; dim < tensor.ndim(); ++dim) {
    if (tensor.size(dim) > 1) last += (tensor.size(dim) - 1) * stride(tensor, dim);
  }
  return Extent{address(tensor), address(tensor) + std::uintptr_t((last + 1) * item_bytes(tensor))};
}

void check_disjoint(Named written, Named other) {
  const Extent a = extent(written.tensor), b = extent(other.tensor);
  if (a.end <= b.begin || b.end <= a.begin) return;
  TVM_FFI_THROW(ValueError) << written.name << " overlaps " << other.name
                            << " in memory: pass a separate tensor";
}

void check_overlaps(const Arguments& a) {
  const Named inputs[] = {{"q", a.q},
                          {"k_cache", a.k_cache},
                          {"v_cache", a.v_cache},
                          {"block_table", a.block_table},
                          {"row_lens", a.row_lens}};
  for (const Named& input : inputs) {
    if (a.out) check_disjoint({"out", *a.out}, input);
    check_disjoint({"acc", a.acc}, input);
    check_disjoint({"max_sum", a.max_sum}, input);
  }
  check_disjoint({"acc", a.acc}, {"max_sum", a.max_sum});
  if (!a.out) return;
  check_disjoint({"out", *a.out}, {"acc", a.acc});
  check_disjoint({"out", *a.out}, {"max_sum", a.max_sum});
}

float read_scale(const char* name, double value) {
  const float rounded = float(value);
  if (std::isfinite(rounded) && rounded > 0.0f) return rounded;
  TVM_FFI_THROW(ValueError) << name << " must be finite and positive as fp32, got " << value;
  return 0.0f;
}

void read_scales(const Arguments& a, Problem* problem) {
  const float softmax_scale = read_scale("softmax_scale", a.softmax_scale);
  const float k_scale = read_scale("k_scale", a.k_scale);
  problem->v_scale = read_scale("v_scale", a.v_scale);
  problem->score_scale = softmax_scale * k_scale;
  if (std::isfinite(problem->score_scale) && problem->score_scale > 0.0f) return;
  TVM_FFI_THROW(ValueError) << "softmax_scale * k_scale must be finite and positive as fp32, got "
                            << problem->score_scale;
}

}  // namespace

Problem validate(const Arguments& arguments, DLDeviceType device_type, i32 splits) {
  const DefaultFloatEnvironment environment;  // the scales' product is rounded here
  Problem problem;
  check_devices(arguments, device_type);
  problem.device = arguments.q.device();
  check_dtypes(arguments);
  read_query(arguments, &problem);
  read_caches(arguments, &problem);
  read_tables(arguments, &problem);
  read_outputs(arguments, splits, &problem);
  check_overlaps(arguments);
  read_scales(arguments, &problem);
  return problem;
}

}  // namespace grouped
