#include "cuda/driver.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

#include <string>

namespace grouped::driver {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr const char* kNoDriver =
    "this library needs an NVIDIA GPU with a driver of CUDA 12.0 or later; without one, load backend='host'";

void* open_library() {
  void* handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* reason = dlerror();
  TVM_FFI_THROW(RuntimeError) << (reason ? reason : kLibrary) << ": " << kNoDriver;
  return nullptr;
}

template <typename Call>
void resolve(void* handle, const char* name, Call* call) {
  *call = reinterpret_cast<Call>(dlsym(handle, name));
  if (*call == nullptr) {
    TVM_FFI_THROW(RuntimeError) << kLibrary << " has no " << name << ": update the NVIDIA driver; "
                                << kNoDriver;
  }
}

Api resolve_all(void* handle) {
  Api api{};
  resolve(handle, "cuInit", &api.init);
  resolve(handle, "cuGetErrorName", &api.error_name);
  resolve(handle, "cuGetErrorString", &api.error_string);
  resolve(handle, "cuDeviceGet", &api.device_get);
  resolve(handle, "cuDeviceGetAttribute", &api.device_attribute);
  resolve(handle, "cuDeviceGetName", &api.device_name);
  resolve(handle, "cuDevicePrimaryCtxRetain", &api.primary_context_retain);
  resolve(handle, "cuCtxGetCurrent", &api.context_current);
  resolve(handle, "cuCtxPushCurrent_v2", &api.context_push);
  resolve(handle, "cuCtxPopCurrent_v2", &api.context_pop);
  resolve(handle, "cuLibraryLoadData", &api.library_load);
  resolve(handle, "cuLibraryGetKernel", &api.library_kernel);
  resolve(handle, "cuKernelGetFunction", &api.kernel_function);
  resolve(handle, "cuFuncSetAttribute", &api.function_set);
  resolve(handle, "cuLaunchKernel", &api.launch);
  return api;
}

std::string describe(const Api& api, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.error_name(result, &name) != 0 || name == nullptr) return "driver error " + std::to_string(result);
  if (api.error_string(result, &text) != 0 || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

void check_with(const Api& api, Result result, const char* call, const char* advice) {
  if (result == 0) return;
  TVM_FFI_THROW(RuntimeError) << call << " gave " << describe(api, result) << ": " << advice;
}

Api start() {
  const Api api = resolve_all(open_library());
  check_with(api, api.init(0), "cuInit", kNoDriver);
  return api;
}

}  // namespace

const Api& api() {
  static const Api loaded = start();  // tried again at the next call if it throws
  return loaded;
}

void check(Result result, const char* call, const char* advice) { check_with(api(), result, call, advice); }

ContextGuard::ContextGuard(Context context) {
  Context current = nullptr;
  check(api().context_current(&current), "cuCtxGetCurrent", kNoDriver);
  if (current == context) return;
  check(api().context_push(context), "cuCtxPushCurrent",
        "an earlier error may have left the context unusable");
  pushed_ = true;
}

ContextGuard::~ContextGuard() {
  Context popped = nullptr;
  if (pushed_) api().context_pop(&popped);  // a destructor can't report; the next call's checks will
}

}  // namespace grouped::driver
