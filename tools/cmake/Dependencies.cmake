# Every dependency of the product, in one place. docs/coding.md says what each one is for.

# LLVM, linked statically by component: a static tool starts about ten times faster than one
# that loads libLLVM. Debian's LLVMConfig.cmake asks for the dylib, so components are mapped to
# archive names here and never taken from LLVM_LINK_LLVM_DYLIB.
# A version in find_package(LLVM 22) is refused by LLVM's own version file (22.1 is "not 22"):
# give the directory instead.
set(METALDOCTOR_LLVM_VERSION "22" CACHE STRING "LLVM major version to look for (19 or later)")
find_package(LLVM CONFIG QUIET
  HINTS /usr/lib/llvm-${METALDOCTOR_LLVM_VERSION}/lib/cmake/llvm
        /opt/homebrew/opt/llvm/lib/cmake/llvm /opt/homebrew/opt/llvm@${METALDOCTOR_LLVM_VERSION}/lib/cmake/llvm
  NO_DEFAULT_PATH)
if(NOT LLVM_FOUND)
  find_package(LLVM CONFIG REQUIRED)
endif()
if(LLVM_VERSION_MAJOR LESS 19)
  message(FATAL_ERROR "LLVM ${LLVM_PACKAGE_VERSION} is too old: 19 or later is needed")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

# metaldoctor_link_llvm(<target> <component>...): static archives of the components, PRIVATE,
# so that no LLVM header or type can leave the target by accident.
function(metaldoctor_link_llvm target)
  llvm_map_components_to_libnames(libs ${ARGN})
  list(REMOVE_ITEM libs LLVM)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${LLVM_DEFINITIONS_LIST})
  target_link_libraries(${target} PRIVATE ${libs})
endfunction()
separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND "${LLVM_DEFINITIONS}")

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(valijson QUIET)
if(NOT TARGET valijson)
  find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)
  add_library(valijson INTERFACE)
  target_include_directories(valijson SYSTEM INTERFACE ${VALIJSON_INCLUDE_DIR})
endif()
# libplist has a pkg-config file but no CMake one; the library's name has the API version in it.
find_path(PLIST_INCLUDE_DIR plist/plist.h REQUIRED)
find_library(PLIST_LIBRARY NAMES plist-2.0 plist REQUIRED)
add_library(plist INTERFACE)
target_include_directories(plist SYSTEM INTERFACE ${PLIST_INCLUDE_DIR})
target_link_libraries(plist INTERFACE ${PLIST_LIBRARY})
find_package(GTest REQUIRED)
if(METALDOCTOR_BENCH)
  find_package(benchmark REQUIRED)
endif()
