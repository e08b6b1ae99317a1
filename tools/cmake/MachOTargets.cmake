# Mach-O files for macOS, built on Linux (clang, ld64.lld) or on macOS (clang, Apple's ld), against
# stub libraries of our own: no SDK is needed, and no byte depends on one.
#
# metaldoctor_macho(<name> TYPE dylib|executable SOURCES <file>... [ARCHS arm64 x86_64]
#                   [DEFINES X=Y...] [LINK <ld option>...] [INCLUDES <dir>...] [DEPENDS <file>...]
#                   [SIGNED_AS <file name>] [OUTPUT_DIRECTORY <dir>])
# gives a target macho_<name> that makes <name> in <dir>, by default ${CMAKE_CURRENT_BINARY_DIR}:
# thin for one architecture, universal for several, signed ad hoc by the linker. The path is the
# property MACHO_FILE.
# SIGNED_AS is the name in the signature and the install name; the default is <name>.
#
# arm64e: clang compiles it, but ld64.lld links no chained fixups for it. Linked as arm64 the file
# is right except for its CPU subtype, which shim/emit.cpp sets before it signs.
set(METALDOCTOR_MACHO_SDK ${PROJECT_SOURCE_DIR}/shim/dylib/sdk)
find_program(METALDOCTOR_MACHO_CLANG NAMES clang++-22 clang++ REQUIRED
  HINTS /opt/homebrew/opt/llvm/bin /usr/lib/llvm-22/bin)
if(APPLE)
  find_program(METALDOCTOR_MACHO_LD NAMES ld REQUIRED)
  find_program(METALDOCTOR_MACHO_LIPO NAMES lipo REQUIRED)
else()
  find_program(METALDOCTOR_MACHO_LD NAMES ld64.lld-22 ld64.lld REQUIRED HINTS /usr/lib/llvm-22/bin)
  find_program(METALDOCTOR_MACHO_LIPO NAMES llvm-lipo-22 llvm-lipo REQUIRED
    HINTS /usr/lib/llvm-22/bin)
endif()

# Freestanding: nothing is linked but what the stubs name. No stack protector, no guard variables,
# no exceptions: each would import more. Paths of the machine stay out of the file.
set(METALDOCTOR_MACHO_FLAGS -std=c++20 -Os -ffreestanding -fno-exceptions -fno-rtti
  -fno-stack-protector -fno-threadsafe-statics -fvisibility=hidden -fno-ident -fno-jump-tables
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

function(metaldoctor_macho name)
  cmake_parse_arguments(ARG "" "TYPE;SIGNED_AS;OUTPUT_DIRECTORY" "SOURCES;ARCHS;DEFINES;LINK;INCLUDES;DEPENDS" ${ARGN})
  if(NOT ARG_ARCHS)
    set(ARG_ARCHS arm64 x86_64)
  endif()
  if(NOT ARG_SIGNED_AS)
    set(ARG_SIGNED_AS ${name})
  endif()
  if(NOT ARG_OUTPUT_DIRECTORY)
    set(ARG_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  list(TRANSFORM ARG_DEFINES PREPEND -D)
  list(TRANSFORM ARG_INCLUDES PREPEND -I)
  file(GLOB_RECURSE stubs CONFIGURE_DEPENDS ${METALDOCTOR_MACHO_SDK}/*.tbd)
  if(ARG_TYPE STREQUAL "dylib")
    set(kind -dylib -install_name @rpath/${ARG_SIGNED_AS})
  else()
    set(kind -execute -e _main)
  endif()
  set(thin_files "")
  foreach(arch IN LISTS ARG_ARCHS)
    set(dir ${CMAKE_CURRENT_BINARY_DIR}/${name}.dir/${arch})
    file(MAKE_DIRECTORY ${dir})
    set(objects "")
    foreach(source IN LISTS ARG_SOURCES)
      get_filename_component(path ${source} ABSOLUTE)
      get_filename_component(stem ${source} NAME_WE)
      add_custom_command(OUTPUT ${dir}/${stem}.o
        COMMAND ${METALDOCTOR_MACHO_CLANG} -target ${arch}-apple-macos13 ${METALDOCTOR_MACHO_FLAGS}
                ${ARG_DEFINES} -I${PROJECT_SOURCE_DIR} ${ARG_INCLUDES}
                -MD -MF ${dir}/${stem}.d -c ${path} -o ${dir}/${stem}.o
        DEPENDS ${path} ${ARG_DEPENDS} DEPFILE ${dir}/${stem}.d VERBATIM)
      list(APPEND objects ${dir}/${stem}.o)
    endforeach()
    set(link_arch ${arch})
    if(arch STREQUAL "arm64e")
      set(link_arch arm64)
    endif()
    # The linker names the signature after its output file: the same name for every slice.
    add_custom_command(OUTPUT ${dir}/${ARG_SIGNED_AS}
      COMMAND ${METALDOCTOR_MACHO_LD} -arch ${link_arch} ${kind} -platform_version macos 13.0 13.0
              -syslibroot ${METALDOCTOR_MACHO_SDK} -lSystem -lobjc ${ARG_LINK}
              -fixup_chains -init_offsets -adhoc_codesign -dead_strip -x
              ${objects} -o ${dir}/${ARG_SIGNED_AS}
      DEPENDS ${objects} ${stubs} VERBATIM)
    list(APPEND thin_files ${dir}/${ARG_SIGNED_AS})
  endforeach()
  file(MAKE_DIRECTORY ${ARG_OUTPUT_DIRECTORY})
  set(file ${ARG_OUTPUT_DIRECTORY}/${name})
  add_custom_command(OUTPUT ${file}
    COMMAND ${METALDOCTOR_MACHO_LIPO} -create ${thin_files} -output ${file}
    DEPENDS ${thin_files} VERBATIM)
  add_custom_target(macho_${name} ALL DEPENDS ${file})
  set_target_properties(macho_${name} PROPERTIES MACHO_FILE ${file})
endfunction()
