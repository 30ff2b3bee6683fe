"""Where a C file can be changed, and how: found in the syntax tree, made in the text.

A change turns an expression into (mutant_is(N) ? (changed) : (original)), so that one build holds all
of them and the environment says which is tried. Nothing is changed inside a macro's call (assertions
among them), in a declaration of a static, in a case label, or where the type forbids it.
"""
import bisect
import os
from dataclasses import dataclass, field

from clang import cindex

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
TURNS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
SUMS = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"}
LOGIC = {"&&": "||", "||": "&&"}
ASSIGNS = {"+=": "-=", "-=": "+="}
KIND = cindex.CursorKind
INTEGERS = {cindex.TypeKind.INT, cindex.TypeKind.UINT, cindex.TypeKind.LONG, cindex.TypeKind.ULONG,
            cindex.TypeKind.LONGLONG, cindex.TypeKind.ULONGLONG, cindex.TypeKind.SHORT,
            cindex.TypeKind.USHORT, cindex.TypeKind.INT128, cindex.TypeKind.UINT128,
            cindex.TypeKind.SCHAR, cindex.TypeKind.UCHAR, cindex.TypeKind.CHAR_S}
CONDITIONS = (KIND.IF_STMT, KIND.WHILE_STMT)


@dataclass
class Change:
    file: str
    start: int
    end: int
    line: int
    kind: str       # relation, boundary, arithmetic, logic, negation, constant, deletion, return
    what: str       # how it reads to people
    pieces: list = field(default_factory=list)  # of the changed text: strings and (start, end)
    is_statement: bool = False
    number: int = 0

    def key(self, source):
        line = source[source.rfind(b"\n", 0, self.start) + 1:]
        line = line[:line.find(b"\n")].decode().strip()
        return f"{os.path.basename(self.file)} | {line} | {self.what}"


class Finder:
    def __init__(self, path, arguments):
        self.path = path
        with open(path, "rb") as file:
            self.source = file.read()
        options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self.unit = cindex.Index.create().parse(path, args=arguments, options=options)
        errors = [d for d in self.unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise SystemExit(f"{path}: {errors[0]}")
        self.changes = []
        macros = [(c.extent.start.offset, c.extent.end.offset) for c in
                  self.unit.cursor.get_children() if c.kind == KIND.MACRO_INSTANTIATION
                  and c.location.file and c.location.file.name == path]
        self.macros = sorted(macros)
        self.macro_starts = [start for start, _ in self.macros]

    def text(self, start, end):
        return self.source[start:end].decode()

    def in_macro(self, start, end):
        at = bisect.bisect_right(self.macro_starts, start)
        return any(s <= start and end <= e for s, e in self.macros[max(0, at - 8):at])

    def cut_by_macro(self, start, end):
        """A macro's call that lies across one of its ends: its text isn't the expression's."""
        return any(s < start < e or s < end < e for s, e in self.macros
                   if s < end and start < e)

    def add(self, cursor, kind, what, pieces, is_statement=False, end=None):
        start, end = cursor.extent.start.offset, end or cursor.extent.end.offset
        if self.in_macro(start, end) and self.text(start, end) not in ("true", "false"):
            return
        if self.cut_by_macro(start, end):
            return
        self.changes.append(Change(self.path, start, end, cursor.extent.start.line, kind, what,
                                   pieces, is_statement))

    def find(self):
        for cursor in self.unit.cursor.get_children():
            if cursor.kind == KIND.FUNCTION_DECL and cursor.is_definition() and \
                    cursor.location.file and cursor.location.file.name == self.path:
                for child in cursor.get_children():
                    if child.kind == KIND.COMPOUND_STMT:
                        self.walk(child, cursor)
        return self.changes

    def walk(self, cursor, function):
        children = list(cursor.get_children())
        if cursor.kind in CONDITIONS and children:
            self.condition(children[0])
        if cursor.kind == KIND.COMPOUND_STMT:
            for child in children:
                self.deletion(child)
        if cursor.kind == KIND.RETURN_STMT and children:
            self.returned(children[0], function)
        for i, child in enumerate(children):
            if child.kind in (KIND.INIT_LIST_EXPR, KIND.CXX_UNARY_EXPR) or \
                    (child.kind == KIND.VAR_DECL and child.storage_class ==
                     cindex.StorageClass.STATIC) or \
                    (cursor.kind == KIND.CASE_STMT and i == 0) or \
                    (cursor.kind == KIND.VAR_DECL and child.kind == KIND.INTEGER_LITERAL and
                     cursor.type.kind == cindex.TypeKind.CONSTANTARRAY):
                continue
            self.expression(child)
            self.walk(child, function)

    def expression(self, cursor):
        if cursor.kind in (KIND.BINARY_OPERATOR, KIND.COMPOUND_ASSIGNMENT_OPERATOR):
            self.binary(cursor)
        elif cursor.kind == KIND.UNARY_OPERATOR:
            operand = next(iter(cursor.get_children()), None)
            at = cursor.extent.start.offset
            if operand is not None and self.text(at, at + 1) == "!":
                inner = (operand.extent.start.offset, operand.extent.end.offset)
                self.add(cursor, "negation", "without !", ["(", inner, ") != 0"])
        elif cursor.kind == KIND.INTEGER_LITERAL:
            self.literal(cursor)

    def binary(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        left = (children[0].extent.start.offset, children[0].extent.end.offset)
        right = (children[1].extent.start.offset, children[1].extent.end.offset)
        operator = self.text(left[1], right[0]).strip()
        is_number = all(c.type.get_canonical().kind in INTEGERS for c in children)
        if operator in RELATIONS:
            other = RELATIONS[operator]
            self.add(cursor, "boundary" if operator in TURNS else "relation",
                     f"{operator} is {other}", [left, f" {other} ", right])
            if operator in TURNS:
                other = TURNS[operator]
                self.add(cursor, "relation", f"{operator} is {other}", [left, f" {other} ", right])
        elif operator in LOGIC:
            other = LOGIC[operator]
            self.add(cursor, "logic", f"{operator} is {other}", ["(", left, f") {other} (", right,
                                                                 ")"])
        elif operator in SUMS and is_number:
            other = SUMS[operator]
            guard = "(" if other not in "/" else "1 + 0 * ("
            pieces = ["(", left, f") {other} (", right, ")"] if guard == "(" else [left]
            self.add(cursor, "arithmetic", f"{operator} is {other if guard == '(' else 'gone'}",
                     pieces)
        elif operator in ASSIGNS and is_number:
            other = ASSIGNS[operator]
            self.add(cursor, "arithmetic", f"{operator} is {other}", [left, f" {other} ", right])

    def literal(self, cursor):
        text = self.text(cursor.extent.start.offset, cursor.extent.end.offset)
        if text in ("true", "false"):
            other = "false" if text == "true" else "true"
        elif text.rstrip("uUlL").isdigit():
            number = int(text.rstrip("uUlL"))
            other = {0: "1", 1: "0"}.get(number, str(number + 1))
        else:
            return
        self.add(cursor, "constant", f"{text} is {other}", [other])

    def condition(self, cursor):
        if cursor.kind in (KIND.BINARY_OPERATOR, KIND.UNARY_OPERATOR):
            return
        inner = (cursor.extent.start.offset, cursor.extent.end.offset)
        self.add(cursor, "negation", "the condition is turned", ["!(", inner, ")"])

    def deletion(self, cursor):
        is_call = cursor.kind == KIND.CALL_EXPR
        end = cursor.extent.end.offset
        if not is_call and cursor.kind != KIND.COMPOUND_ASSIGNMENT_OPERATOR and not (
                cursor.kind == KIND.BINARY_OPERATOR and self.is_assignment(cursor)) and not (
                cursor.kind == KIND.UNARY_OPERATOR):
            return
        if self.source[end:end + 1] != b";":
            return
        self.add(cursor, "deletion", "the statement is gone", [], True, end + 1)

    def is_assignment(self, cursor):
        children = list(cursor.get_children())
        between = self.text(children[0].extent.end.offset, children[1].extent.start.offset)
        return between.strip() == "="

    def returned(self, cursor, function):
        kind = function.result_type.get_canonical().kind
        inner = (cursor.extent.start.offset, cursor.extent.end.offset)
        text = self.text(*inner)
        if kind == cindex.TypeKind.BOOL and text not in ("true", "false"):
            self.add(cursor, "return", "the result is turned", ["!(", inner, ")"])
        elif kind in INTEGERS and not text.isdigit():
            self.add(cursor, "return", "one more is returned", ["(", inner, ") + 1"])
        elif kind == cindex.TypeKind.POINTER and text != "NULL":
            self.add(cursor, "return", "NULL is returned", ["NULL"])


class Writer:
    """Puts chosen changes, one within the other, into a file's text."""

    def __init__(self, source, changes):
        self.source = source
        self.changes = sorted(changes, key=lambda c: (c.start, -c.end))

    def render(self, start, end, skipped=()):
        inside = [c for c in self.changes
                  if start <= c.start and c.end <= end and c not in skipped]
        out, at = [], start
        for change in inside:
            if change.start < at:
                continue  # within the one before
            out.append(self.source[at:change.start].decode())
            out.append(self.one(change, skipped))
            at = change.end
        out.append(self.source[at:end].decode())
        return "".join(out)

    def one(self, change, skipped):
        skipped = (*skipped, change)
        original = self.render(change.start, change.end, skipped)
        if change.is_statement:
            return f"if (!mutant_is({change.number})) {{ {original} }}"
        changed = "".join(p if isinstance(p, str) else self.render(*p, skipped)
                          for p in change.pieces)
        return f"(mutant_is({change.number}) ? ({changed}) : ({original}))"

    def text(self):
        return '#include "tallyman/base/mutant.h"\n' + self.render(0, len(self.source))
