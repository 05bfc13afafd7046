# CUDA libraries: grouped_attention-cuda-sm_NN.so with its cubin inside, and the cubin and the assembler's report
# (registers, spills, shared memory) beside it. NVRTC compiles the kernels: no GPU and no CUDA toolkit needed.

set(GROUPED_NVRTC_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/nvrtc_compile.py")
file(GLOB GROUPED_DEVICE_HEADERS CONFIGURE_DEPENDS
     "${CMAKE_CURRENT_LIST_DIR}/../include/grouped/*.h" "${CMAKE_CURRENT_LIST_DIR}/../src/cuda/*.h"
     "${CMAKE_CURRENT_LIST_DIR}/../src/cuda/*.cuh")

function(grouped_compile_cubin sm stem)
  add_custom_command(
    OUTPUT "${stem}.cubin" "${stem}.ptxas.txt"
    COMMAND "${Python_EXECUTABLE}" "${GROUPED_NVRTC_SCRIPT}" src/cuda/kernels.cu --headers include --headers src
            --arch sm_${sm} --cubin "${stem}.cubin" --log "${stem}.ptxas.txt"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    DEPENDS src/cuda/kernels.cu ${GROUPED_DEVICE_HEADERS} "${GROUPED_NVRTC_SCRIPT}"
    COMMENT "Compiling the sm_${sm} kernels with NVRTC"
    VERBATIM)
endfunction()

# A target of its own: the source is the same for every architecture, the data isn't.
function(grouped_add_embedded_cubin sm stem)
  set(name grouped_cubin_sm_${sm})
  add_custom_target(${name}_data DEPENDS "${stem}.cubin")
  add_library(${name} OBJECT src/cuda/cubin.cc)
  add_dependencies(${name} ${name}_data)
  target_compile_definitions(${name} PRIVATE GROUPED_CUBIN="grouped_attention-cuda-sm_${sm}.cubin")
  target_compile_options(${name} PRIVATE "-Wa,-I${CMAKE_CURRENT_BINARY_DIR}")
  # Appended: the property belongs to the source, which all architectures share.
  set_property(SOURCE src/cuda/cubin.cc APPEND PROPERTY OBJECT_DEPENDS "${stem}.cubin")
endfunction()

function(grouped_add_cuda_library sm)
  if(NOT sm MATCHES "^(70|80|90)$")
    message(FATAL_ERROR "cuda:sm_${sm}: the kernels are written for sm_70, sm_80 and sm_90")
  endif()
  set(name grouped_cuda_sm_${sm})
  set(stem "${CMAKE_CURRENT_BINARY_DIR}/grouped_attention-cuda-sm_${sm}")
  grouped_compile_cubin(${sm} "${stem}")
  grouped_add_embedded_cubin(${sm} "${stem}")

  add_library(${name} MODULE src/cuda/driver.cc src/cuda/export.cc src/cuda/kernels.cc)
  target_link_libraries(${name} PRIVATE grouped_cubin_sm_${sm})
  target_compile_definitions(${name} PRIVATE GROUPED_SM=${sm})
  target_link_libraries(${name} PRIVATE grouped_options grouped_common ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES PREFIX "" OUTPUT_NAME grouped_attention-cuda-sm_${sm} SUFFIX ".so")
  grouped_install(${name} cuda ${sm} "${stem}.cubin" "${stem}.ptxas.txt")
endfunction()
