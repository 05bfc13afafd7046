#include "cuda/kernels.h"

#include <tvm/ffi/error.h>

#include <map>
#include <mutex>
#include <string>

#include "cuda/layout.h"

extern "C" const unsigned char grouped_cubin[];  // cubin.S

namespace grouped {
namespace {

template <i32 Heads, i32 HeadDim, i32 RowTiles>
constexpr i32 kSharedBytes = Layout<Heads, HeadDim, RowTiles, GROUPED_SM>::bytes;

void check_architecture(driver::Device device, i32 ordinal) {
  const driver::Api& api = driver::api();
  int major = 0, minor = 0;
  char name[128] = "";
  constexpr const char* advice = "the device doesn't answer";
  driver::check(api.device_attribute(&major, driver::kDeviceComputeMajor, device), "cuDeviceGetAttribute",
                advice);
  driver::check(api.device_attribute(&minor, driver::kDeviceComputeMinor, device), "cuDeviceGetAttribute",
                advice);
  if (major == GROUPED_SM / 10 && minor >= GROUPED_SM % 10) return;
  driver::check(api.device_name(name, sizeof name, device), "cuDeviceGetName", advice);
  TVM_FFI_THROW(RuntimeError) << "this library holds code for sm_" << GROUPED_SM << ", device " << ordinal
                              << " (" << name << ") is sm_" << major << minor
                              << ": load the library of that architecture, or backend='host'";
}

class CubinLibrary {
 public:
  CubinLibrary() {
    driver::check(
        driver::api().library_load(&library_, grouped_cubin, nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData", "the driver can't read the embedded cubin: update it, or rebuild the library");
  }

  // In the current context; the driver loads the code into it here, not at the first launch.
  driver::Function function(const std::string& name) const {
    driver::Kernel kernel = nullptr;
    driver::Function function = nullptr;
    driver::check(driver::api().library_kernel(&kernel, library_, name.c_str()), "cuLibraryGetKernel",
                  "the embedded cubin lacks a kernel: rebuild the library");
    driver::check(driver::api().kernel_function(&function, kernel), "cuKernelGetFunction",
                  "the code can't be loaded onto the device: is its memory full?");
    return function;
  }

  SplitKernel split(const std::string& name, i32 shared_bytes) const {
    const SplitKernel kernel{function(name), unsigned(shared_bytes)};
    driver::check(
        driver::api().function_set(kernel.function, driver::kFunctionMaxDynamicShared, shared_bytes),
        "cuFuncSetAttribute", "the device has less shared memory than its architecture promises");
    return kernel;
  }

 private:
  driver::Library library_ = nullptr;  // lives as long as the process
};

DeviceKernels load(i32 ordinal) {
  const driver::Api& api = driver::api();
  driver::Device device = 0;
  DeviceKernels kernels;
  driver::check(api.device_get(&device, ordinal), "cuDeviceGet", "no such CUDA device in this process");
  check_architecture(device, ordinal);
  driver::check(api.primary_context_retain(&kernels.context, device), "cuDevicePrimaryCtxRetain",
                "the device can't be used: is another process holding it exclusively?");
  const driver::ContextGuard guard(kernels.context);
  static const CubinLibrary library;
  kernels.split_6x256[0] = library.split("grouped_split_6x256_1", kSharedBytes<6, 256, 1>);
  kernels.split_6x256[1] = library.split("grouped_split_6x256_2", kSharedBytes<6, 256, 2>);
  kernels.split_6x256[2] = library.split("grouped_split_6x256_3", kSharedBytes<6, 256, 3>);
  kernels.split_3x64[0] = library.split("grouped_split_3x64_1", kSharedBytes<3, 64, 1>);
  kernels.split_3x64[1] = library.split("grouped_split_3x64_2", kSharedBytes<3, 64, 2>);
  kernels.combine_6x256 = library.function("grouped_combine_6x256");
  kernels.combine_3x64 = library.function("grouped_combine_3x64");
  return kernels;
}

std::string described(const char* name, i32 shared_bytes) {
  return std::string("\"") + name + "\": {\"dynamic_shared_bytes\": " + std::to_string(shared_bytes) + "}";
}

}  // namespace

std::string describe_kernels() {
  return "{" + described("grouped_split_6x256_1", kSharedBytes<6, 256, 1>) + ", " +
         described("grouped_split_6x256_2", kSharedBytes<6, 256, 2>) + ", " +
         described("grouped_split_6x256_3", kSharedBytes<6, 256, 3>) + ", " +
         described("grouped_split_3x64_1", kSharedBytes<3, 64, 1>) + ", " +
         described("grouped_split_3x64_2", kSharedBytes<3, 64, 2>) + ", " +
         described("grouped_combine_6x256", 0) + ", " + described("grouped_combine_3x64", 0) + "}";
}

const DeviceKernels& kernels_of(i32 device) {
  static std::mutex mutex;
  static std::map<i32, DeviceKernels> loaded;  // references stay valid as it grows
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = loaded.find(device);
  return found != loaded.end() ? found->second : loaded.emplace(device, load(device)).first->second;
}

}  // namespace grouped
