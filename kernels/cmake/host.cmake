# Host libraries: grouped_attention-host-sm_NN.so, running the tensor-core model of one architecture.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(GROUPED_HAS_V3 ON)
else()
  set(GROUPED_HAS_V3 OFF)
endif()

# The same sources once per instruction set; dispatch.cc chooses at run time.
function(grouped_add_host_vector_objects sm isa flags)
  set(name grouped_host_${isa}_sm_${sm})
  add_library(${name} OBJECT src/host/split_vector.cc src/host/combine.cc)
  target_compile_definitions(${name} PRIVATE GROUPED_SM=${sm} GROUPED_ISA=${isa})
  # -frounding-math: part of the split runs rounding toward zero.
  target_compile_options(${name} PRIVATE -frounding-math -fno-trapping-math -Wno-psabi ${flags})
  target_link_libraries(${name} PRIVATE grouped_options)
  target_link_libraries(grouped_host_sm_${sm} PRIVATE ${name})
endfunction()

function(grouped_add_host_library sm)
  if(NOT sm MATCHES "^(70|80|90)$")
    message(FATAL_ERROR "host:sm_${sm}: there are models of sm_70, sm_80 and sm_90")
  endif()
  set(name grouped_host_sm_${sm})
  add_library(
    ${name} MODULE
    src/host/call.cc src/host/dispatch.cc src/host/export.cc src/host/parallel.cc src/host/run.cc
    src/host/split_scalar.cc)
  target_compile_definitions(${name} PRIVATE GROUPED_SM=${sm})
  target_link_libraries(${name} PRIVATE grouped_options grouped_common)
  grouped_add_host_vector_objects(${sm} baseline "")
  if(GROUPED_HAS_V3)
    target_compile_definitions(${name} PRIVATE GROUPED_HAS_V3=1)
    grouped_add_host_vector_objects(${sm} v3 "-march=x86-64-v3")
  endif()
  set_target_properties(${name} PROPERTIES PREFIX "" OUTPUT_NAME grouped_attention-host-sm_${sm} SUFFIX ".so")
  grouped_install(${name} host ${sm})
endfunction()
