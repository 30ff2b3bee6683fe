"""The core is a pure function: what it links shows no clock, I/O, environment, randomness or heap.

Looked at are the undefined symbols of libtallyman_core.a, and of each object of base and api that the
core reaches through them.
"""
import os
import re
import subprocess

# What the core itself may take from libc. A sort gives one result whatever its algorithm, because
# every order here is total.
CORE_LIBC = {"memcpy", "memset", "memcmp", "memmove", "memchr", "strlen", "qsort", "bsearch"}
# What the objects of base and api may take that it reaches: the heap and formatting into memory.
BELOW_LIBC = CORE_LIBC | {
    "malloc", "calloc", "realloc", "free", "abort", "snprintf", "vsnprintf", "strcmp", "strncmp",
    "strchr", "strrchr", "strnlen", "strspn", "strcspn", "strstr", "memrchr", "strtod", "strtoll",
    "strtol", "strtoull", "pow", "__ctype_b_loc", "__errno_location",
}
# alloc.c says that memory ran out before it aborts; nothing comes back from there.
BELOW_EXTRA = {("base", "alloc.c.o"): {"fprintf", "stderr", "fwrite", "fputs", "fputc"}}
# Libraries that only turn text into structures in memory.
BELOW_PREFIXES = ("yajl_",)
# Of base, but not for the core: only the driver and the daemon log.
FORBIDDEN_OURS = re.compile(r"^log_")
COMPILER = re.compile(r"^(__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__asan_\w+|__ubsan_\w+"
                      r"|__sanitizer_\w+|__gcov_\w+|__llvm_\w+|__sancov_\w+|__udivti3|__divti3|__divmodti4|__floattidf"
                      r"|__umodti3|__modti3|__muloti4|__multi3|__popcountdi2|__tls_get_addr)$")


def plain(symbol):
    """memcpy for __memcpy_chk, as a hardened build calls it; no symbol version."""
    symbol = symbol.split("@")[0]
    return re.sub(r"^__(\w+)_chk$", r"\1", symbol)


def read_archive(path):
    """{object name: (defined symbols, undefined symbols)}"""
    output = subprocess.run(["nm", "-P", path], check=True, capture_output=True, text=True).stdout
    objects = {}
    current = None
    for line in output.splitlines():
        member = re.search(r"\[([^]]+)\]:$", line)
        if member:
            current = objects.setdefault(member[1], (set(), set()))
        elif line.strip():
            name, kind = line.split()[:2]
            if kind in "Uwv":
                current[1].add(name)
            elif kind.isupper():
                current[0].add(name)
    return objects


def read_layer(build_dir, layer):
    path = os.path.join(build_dir, f"libtallyman_{layer}.a")
    return read_archive(path) if os.path.exists(path) else {}


def check_core(core, owners):
    """Problems of the core itself, and the symbols of base and api that it uses: {symbol: user}."""
    problems = []
    used = {}
    own = set().union(*(defined for defined, _ in core.values()))
    for name, (_, undefined) in sorted(core.items()):
        for symbol in sorted(undefined - own):
            if symbol in owners and not FORBIDDEN_OURS.match(symbol):
                used.setdefault(symbol, f"core/{name}")
            elif plain(symbol) not in CORE_LIBC and not COMPILER.match(symbol):
                problems.append(f"core/{name}: uses {plain(symbol)}; the core has no clock, I/O, "
                                "environment, randomness, heap or log")
    return problems, used


def check_below(below, owners, used):
    """Problems of the objects of base and api that are reached from `used`."""
    problems = []
    queue = sorted({owners[symbol] for symbol in used})
    reached_by = {owners[symbol]: user for symbol, user in sorted(used.items())}
    seen = set()
    while queue:
        place = queue.pop(0)
        if place in seen:
            continue
        seen.add(place)
        for symbol in sorted(below[place][1]):
            if symbol in owners:
                reached_by.setdefault(owners[symbol], "/".join(place))
                queue.append(owners[symbol])
                continue
            allowed = BELOW_LIBC | BELOW_EXTRA.get(place, set())
            if (plain(symbol) not in allowed and not COMPILER.match(symbol) and
                    not symbol.startswith(BELOW_PREFIXES)):
                problems.append(f"{'/'.join(place)}: uses {plain(symbol)} and is reached from "
                                f"{reached_by[place]}: put what does I/O into a file of its own")
    return problems


def check(_top, context):
    core = read_layer(context.build_dir, "core")
    if not core:
        return [f"{context.build_dir} has no libtallyman_core.a: build it first"]
    below = {(layer, name): symbols for layer in ("base", "api")
             for name, symbols in read_layer(context.build_dir, layer).items()}
    owners = {symbol: place for place, (defined, _) in below.items() for symbol in defined}
    problems, used = check_core(core, owners)
    return problems + check_below(below, owners, used)
