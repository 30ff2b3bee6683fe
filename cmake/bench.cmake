# What the core's events cost: `ninja bench_policy`, or `make bench`. Not built otherwise.
file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/bench/policy/*.c")
add_executable(bench_policy EXCLUDE_FROM_ALL ${bench_sources})
target_include_directories(bench_policy PRIVATE "${PROJECT_SOURCE_DIR}/tests/bench")
target_link_libraries(bench_policy PRIVATE tallyman_flags tallyman_core)
add_custom_target(bench COMMAND bench_policy DEPENDS bench_policy USES_TERMINAL)
