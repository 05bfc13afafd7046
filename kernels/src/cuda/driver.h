// The few driver calls that the launcher needs, found in libcuda at run time: the library neither links
// against CUDA nor needs its headers, so it builds and loads on any machine.
#pragma once

namespace grouped::driver {

using Result = int;
using Device = int;
using Context = struct CUctx_st*;
using Function = struct CUfunc_st*;
using Kernel = struct CUkern_st*;
using Library = struct CUlib_st*;
using Stream = struct CUstream_st*;

constexpr int kFunctionMaxDynamicShared = 8;
constexpr int kDeviceComputeMajor = 75;
constexpr int kDeviceComputeMinor = 76;

struct Api {
  Result (*init)(unsigned flags);
  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);
  Result (*device_get)(Device*, int ordinal);
  Result (*device_attribute)(int*, int attribute, Device);
  Result (*device_name)(char*, int length, Device);
  Result (*primary_context_retain)(Context*, Device);
  Result (*context_current)(Context*);
  Result (*context_push)(Context);
  Result (*context_pop)(Context*);
  Result (*library_load)(Library*, const void* code, void*, void*, unsigned, void*, void*, unsigned);
  Result (*library_kernel)(Kernel*, Library, const char* name);
  Result (*kernel_function)(Function*, Kernel);
  Result (*function_set)(Function, int attribute, int value);
  Result (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream, void** parameters,
                   void** extra);
};

// The driver, initialised at first use; RuntimeError when there is none, or it is too old.
const Api& api();

// RuntimeError naming the call, the driver's error and `advice` unless the call succeeded.
void check(Result result, const char* call, const char* advice);

// Makes a context current for a scope. Costs one query when it already is.
class ContextGuard {
 public:
  explicit ContextGuard(Context context);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace grouped::driver
