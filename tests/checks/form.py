"""C files are as clang-format leaves them, and every body has its braces."""
import re
import subprocess

import tree

# Other versions lay a few things out differently.
CLANG_FORMAT_MAJOR = 14
BODY_WORDS = re.compile(r"\b(if|while|for|switch|GANG_LINE_FOREACH|HASH_ITER|RB_FOREACH|RB_FOREACH_SAFE|else|do)\b")
WARNING = re.compile(r"^([^:]+:\d+):\d+: (?:error|warning): ")


def closing(text, opening):
    """The offset behind the parenthesis that closes the one at `opening`, or None."""
    depth = 0
    for offset in range(opening, len(text)):
        if text[offset] == "(":
            depth += 1
        elif text[offset] == ")":
            depth -= 1
            if depth == 0:
                return offset + 1
    return None


def missing_braces(text):
    """Offsets of the words whose body has no braces."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda found: re.sub(r"[^\n]", " ", found[0]),
                  tree.code_only(text), flags=re.MULTILINE)
    for found in BODY_WORDS.finditer(code):
        word, behind = found[1], found.end()
        if word not in ("else", "do"):
            opening = re.compile(r"\s*\(").match(code, behind)
            if not opening:
                continue
            behind = closing(code, opening.end() - 1)
            if behind is None:
                continue
        rest = code[behind:behind + 200].lstrip()
        is_loop_end = word == "while" and rest.startswith(";") and \
            code[:found.start()].rstrip().endswith("}")
        is_else_if = word == "else" and re.match(r"if\b", rest)
        if not rest.startswith("{") and not is_loop_end and not is_else_if:
            yield found.start()


def check(top, context):
    problems = []
    paths = tree.c_files(top)
    for path in paths:
        text = tree.read(top, path)
        problems += [f"{path}:{tree.line_of(text, offset)}: the body needs braces"
                     for offset in missing_braces(text)]
    version = subprocess.run(["clang-format", "--version"], check=True, capture_output=True,
                             text=True).stdout
    if f"version {CLANG_FORMAT_MAJOR}." not in version:
        context.note(f"form: layout not checked: that takes clang-format {CLANG_FORMAT_MAJOR}, "
                     f"this is {version.strip()}")
        return problems
    if paths:
        output = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths], cwd=top,
                                check=False, capture_output=True, text=True)
        found = sorted({match[1] for match in map(WARNING.match, output.stderr.splitlines())
                        if match})
        problems += [f"{place}: clang-format would change this (make format)" for place in found]
        if output.returncode != 0 and not found:
            problems.append(f"clang-format failed: {output.stderr.strip()[:500]}")
    return problems
