"""Which files the checks look at, and what they make of a C file."""
import os
import re

SKIPPED = {".git", "build", "__pycache__", "node_modules"}
C_DIRS = ("api", "controller", "include", "tests")

STRINGS_AND_COMMENTS = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def files(top):
    """Every file of the project, as paths relative to `top`, in order."""
    found = []
    for directory, names, entries in os.walk(top):
        relative = os.path.relpath(directory, top)
        names[:] = sorted(name for name in names if name not in SKIPPED and
                          not (relative == "." and name.startswith("build")))
        for entry in entries:
            path = os.path.normpath(os.path.join(relative, entry))
            if entry in SKIPPED:  # in a linked worktree .git is a file
                continue
            if os.path.isfile(os.path.join(top, path)):
                found.append(path)
    return sorted(found)


def c_files(top):
    return [path for path in files(top)
            if path.endswith((".c", ".h")) and path.split(os.sep)[0] in C_DIRS]


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_text(top, path):
    with open(os.path.join(top, path), "rb") as file:
        return b"\0" not in file.read(8192)


def shebang(top, path):
    """The interpreter that a script names, or ""."""
    with open(os.path.join(top, path), "rb") as file:
        first = file.readline(200)
    return first.decode("utf-8", "replace").strip() if first.startswith(b"#!") else ""


def is_python(top, path):
    return path.endswith(".py") or "python" in shebang(top, path)


def is_shell(top, path):
    return path.endswith(".sh") or re.search(r"\b(ba)?sh$", shebang(top, path)) is not None


def layer_of(path):
    """The layer that a C file belongs to, or None (tests)."""
    parts = path.split(os.sep)
    if parts[0] == "api":
        return "api"
    if parts[0] == "controller" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ["include", "tallyman"] and len(parts) > 3:
        return parts[2]
    return None


def code_only(text):
    """The text with what stands in comments and strings blanked out; lines stay where they are."""
    return STRINGS_AND_COMMENTS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
