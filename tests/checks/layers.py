"""A layer includes only itself and what stands to its left, and only its own libraries."""
import os
import re

import tree

LEFT_OF = {
    "base": [],
    "api": ["base"],
    "core": ["base", "api"],
    "driver": ["base", "api", "core"],
    "kube": ["base", "api", "core", "driver"],
    "store": ["base", "api", "core", "driver"],
    "http": ["base", "api", "core", "driver"],
    "sim": ["base", "api", "core", "driver"],
    "daemon": ["base", "api", "core", "driver", "kube", "store", "http", "sim"],
}

# Which layers may include a library's header.
LIBRARIES = {
    "uv": {"kube", "store", "http", "daemon"},
    "curl": {"kube", "daemon"},
    "yajl": {"api"},
    "yaml": {"api"},
    "zlib": {"api", "kube", "store", "http", "daemon"},
    "lmdb": {"store", "daemon"},
    "microhttpd": {"http", "daemon"},
}
# These come in through one header of ours, which settles how they allocate.
MAP_HEADERS = {"uthash.h", "utlist.h", "utarray.h", "bsd/sys/tree.h"}
MAP_HEADER = os.path.join("include", "tallyman", "base", "map.h")
YAJL_FILES_MAX = 2

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def check_own(top, path, layer, target):
    """An include in quotes: a contract header, or a private one of the same layer."""
    parts = target.split("/")
    if parts[0] == "tallyman":
        other = parts[1] if len(parts) > 2 else "?"
        if other != layer and other not in LEFT_OF[layer]:
            allowed = " ".join([*LEFT_OF[layer], layer])
            return f"layer {layer} includes \"{target}\"; it may include {allowed}"
        if not os.path.exists(os.path.join(top, "include", target)):
            return f"\"{target}\" doesn't exist"
        return None
    resolved = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if not os.path.exists(os.path.join(top, resolved)):
        return f"\"{target}\" is neither a contract header nor next to the file"
    if tree.layer_of(resolved) != layer:
        return f"layer {layer} includes \"{target}\" of layer {tree.layer_of(resolved)}"
    return None


def check_library(path, layer, target):
    if target in MAP_HEADERS:
        return None if path == MAP_HEADER else f"<{target}> comes in through tallyman/base/map.h"
    library = re.split(r"[/.]", target)[0]
    if library in LIBRARIES and layer not in LIBRARIES[library]:
        allowed = " ".join(sorted(LIBRARIES[library]))
        return f"layer {layer} includes <{target}>; only {allowed} may"
    return None


def check(top, _context):
    problems = []
    yajl_files = []
    for path in tree.c_files(top):
        layer = tree.layer_of(path)
        if layer is None:
            continue
        if layer not in LEFT_OF:
            problems.append(f"{path}: there is no layer {layer}")
            continue
        text = tree.read(top, path)
        for found in INCLUDE.finditer(text):
            target = found[2]
            if found[1] == '"':
                problem = check_own(top, path, layer, target)
            else:
                problem = check_library(path, layer, target)
                if target.startswith("tallyman/"):
                    problem = f"<{target}> should stand in quotes"
            if problem:
                problems.append(f"{path}:{tree.line_of(text, found.start())}: {problem}")
            if target.startswith("yajl/") and path not in yajl_files:
                yajl_files.append(path)
    if len(yajl_files) > YAJL_FILES_MAX:
        problems.append(f"yajl is included by {len(yajl_files)} files ({' '.join(yajl_files)}); "
                        f"{YAJL_FILES_MAX} may: one that reads, one that writes")
    return problems
