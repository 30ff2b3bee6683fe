# tallyman_layer(NAME DIR dir [EXCLUDE file...] [LINK target...])
#
# Makes the static library tallyman_NAME of dir/*.c and dir/*/*.c. New files are noticed by the next
# build. A layer that has no file yet is an interface, so that those to its right still link.
function(tallyman_layer name)
    cmake_parse_arguments(PARSE_ARGV 1 layer "" "DIR" "EXCLUDE;LINK")
    set(dir "${PROJECT_SOURCE_DIR}/${layer_DIR}")
    file(GLOB sources CONFIGURE_DEPENDS "${dir}/*.c" "${dir}/*/*.c")
    foreach(excluded IN LISTS layer_EXCLUDE)
        list(REMOVE_ITEM sources "${dir}/${excluded}")
    endforeach()

    if(sources)
        add_library(tallyman_${name} STATIC ${sources})
        target_link_libraries(tallyman_${name} PRIVATE tallyman_flags PUBLIC ${layer_LINK})
        if(TALLYMAN_COVERAGE AND name IN_LIST TALLYMAN_COUNTED)
            target_compile_options(tallyman_${name} PRIVATE --coverage -O0)
        endif()
    else()
        add_library(tallyman_${name} INTERFACE)
        target_link_libraries(tallyman_${name} INTERFACE ${layer_LINK})
    endif()
endfunction()
