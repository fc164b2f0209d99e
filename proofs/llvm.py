"""Run what clang makes of a C header of the kernels, on symbols.

The headers are copied (a mutation may change one on the way), compiled with the options of `setup.py`, and the LLVM
instructions are executed one after the other. Integers are bit vectors of z3, pointers are concrete, a branch on a
symbol is followed both ways. Arithmetic in `float` is left open: a function of its operands, the same each time. A
`double` is a `Whole`, of which `sums` says what is used, or unknown.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import z3

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = ("-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w")
LOOPS = ("-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize")  # loops stay as they are written
EXACT = 2**53  # whole doubles below are exact
SIZES = {"float": 4, "double": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}


class Failed(Exception):
    """What was to be shown does not hold, or could not be shown."""


class NoInteger(Failed):
    """A bit vector is not known to be an integer that does not wrap around."""


class Solver:
    """Facts that are assumed, and what follows from them. `hub` is a symbol that facts do not become related by."""

    shown: ClassVar = {}  # what was shown before, on another path

    def __init__(self, *facts, hub="norm", effort=20_000_000):
        self.facts, self.hub, self.effort, self.n_shown = list(facts), hub, effort, 0
        self.cuts = []  # terms in whose place another symbol stands, of which enough is known
        self.cut_facts = {}

    def related(self, claim):
        """Return the facts that have to do with a claim."""
        of_claim = names(claim)
        known, rest, with_integers = set(of_claim) - {self.hub}, [], has_integers(claim)
        found = []
        for fact in map(self.cut, self.facts):
            if has_integers(fact) == with_integers:
                (rest if names(fact) - {self.hub} else found).append(fact)
        more = True
        while more:
            more = [fact for fact in rest if names(fact) & known]
            rest = [fact for fact in rest if not names(fact) & known]
            found += more
            known |= {name for fact in more for name in names(fact)} - {self.hub}
        return found

    def cut(self, fact):
        key = fact.get_id(), len(self.cuts)
        if key not in self.cut_facts:
            self.cut_facts[key] = fact, z3.substitute(fact, *self.cuts) if self.cuts else fact
        return self.cut_facts[key][1]

    def refuted(self, condition, facts):
        """Return whether a condition contradicts facts, as z3 says it, and the solver."""
        solver = z3.SimpleSolver() if has_integers(condition) else z3.SolverFor("QF_UFBV")
        solver.set("rlimit", self.effort)  # not seconds: the same on a slow machine
        solver.add(condition, *facts)
        return solver.check(), solver

    def possible(self, condition):
        """Whether a condition may hold: true if in doubt."""
        return self.refuted(condition, self.related(condition))[0] != z3.unsat

    def show(self, claim, what):
        """Fail unless the claim follows from the facts."""
        claim = z3.substitute(claim, *self.cuts) if self.cuts else claim
        if z3.is_true(z3.simplify(claim, som=True)):
            return
        facts = self.related(claim)
        self.n_shown += 1
        key = claim.get_id(), *(fact.get_id() for fact in facts)
        if key in Solver.shown:
            return
        found, solver = self.refuted(z3.Not(claim), facts)
        if found != z3.unsat:
            shown = f": {str(solver.model())[:300]}" if found == z3.sat else ", with this effort"
            raise Failed(f"not shown: {what}{shown}")
        Solver.shown[key] = claim, facts  # terms keep their numbers


def names(term):
    """Return the symbols in a term."""
    key = term.get_id()
    if key not in NAMES:
        if z3.is_const(term):
            found = frozenset([str(term)] if term.decl().kind() == z3.Z3_OP_UNINTERPRETED else [])
        else:
            found = frozenset().union(*map(names, term.children()))
        NAMES[key] = term, found
    return NAMES[key][1]


NAMES = {}


def has_integers(term):
    """Whether a term speaks of unbounded integers, or of real numbers."""
    key = term.get_id()
    if key not in SEEN:
        SEEN[key] = term, z3.is_arith(term) or any(map(has_integers, term.children()))  # the term keeps its number
    return SEEN[key][1]


SEEN = {}


@dataclass(frozen=True)
class Whole:
    """A double that is a whole number >= 0: its value, and the exact number that it stands for.

    They are equal up to 2**53, or the value is beyond 2**52. Sums of such numbers are such numbers: `rounding` of
    contributions.py shows it.
    """

    value: object
    exact: object

    def fact(self):
        return z3.And(self.value >= 0, self.exact >= 0, within(self.value, self.exact))


def within(value, exact):
    return z3.Or(z3.And(value == exact, exact <= EXACT), z3.And(value > EXACT // 2, exact > EXACT // 2))


class Unknown:
    """A double of which nothing is used."""


@dataclass(frozen=True)
class Pointer:
    memory: dict  # offset -> (size, value)
    at: int


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    text: str


def compiled(source, mutation=None, folder="skdplda/_kernels"):
    """Return (functions, structs, signatures) of a program that includes headers; INLINE functions stay apart."""
    with tempfile.TemporaryDirectory() as place:
        for header in (ROOT / folder).glob("*.h"):
            shutil.copy(header, place)
        simd = Path(place, "simd.h")
        found = re.subn(r"#define INLINE .*", "#define INLINE static __attribute__((noinline))", simd.read_text())
        assert found[1] == 1
        simd.write_text(found[0])
        if mutation:
            file, old, new = mutation
            text = Path(place, file).read_text()
            if text.count(old) != 1:
                raise ValueError(f"{file}: a mutation's text must stand there once: {old}")
            Path(place, file).write_text(text.replace(old, new))
        Path(place, "driver.c").write_text(source)
        subprocess.run(["clang", *OPTIONS, *LOOPS, "-S", "-emit-llvm", "driver.c"], cwd=place, check=True)
        return parse(Path(place, "driver.ll").read_text())


@cache
def members(kind, folder="skdplda/_kernels"):
    """Return the names of the fields of a structure that a header defines, in order."""
    text = "\n".join(header.read_text() for header in sorted((ROOT / folder).glob("*.h")))
    body = re.search(r"typedef struct \{([^}]*)\} " + kind + ";", text).group(1)
    fields = [one for line in re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(";")[:-1] for one in line.split(",")]
    return [re.search(r"(\w+)\s*$", field).group(1) for field in fields]


def parse(text):
    structs = dict(re.findall(r"^(%[\w.]+) = type (?:<?\{ )?(.*?)(?: \}>?)?$", text, re.M))
    functions, signatures = {}, {}
    for head, body in re.findall(r"^define ([^\n]*)\{\n(.*?)^\}", text, re.M | re.S):
        name = re.search(r"@([\w.]+)\(", head).group(1)
        parameters = [part.split()[-1] for part in split(head[head.index(name) + len(name) + 1 : closing(head, name)])]
        signatures[name] = split(head[head.index(name) + len(name) + 1 : closing(head, name)])
        first = str(len(parameters))
        blocks, label = {first: []}, first
        for line in body.splitlines():
            line = line.split(", !")[0].split(" ;")[0].rstrip()
            if found := re.match(r"^([\w.]+):", line):
                label = found.group(1)
                blocks[label] = []
            elif line.strip():
                found = re.match(r"\s+(?:(%[\w.]+) = )?((?:tail |musttail )?\w+)\s*(.*)", line)
                blocks[label].append(Instruction(found.group(1), found.group(2).split()[-1], found.group(3)))
        functions[name] = parameters, first, blocks
    return functions, structs, signatures


def closing(head, name):
    depth = 0
    for i in range(head.index("@" + name), len(head)):
        depth += {"(": 1, ")": -1}.get(head[i], 0)
        if head[i] == ")" and not depth:
            return i
    raise ValueError(head)


def split(text):
    """Split at commas that are not within brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def bits(value, size):
    return z3.BitVecVal(value, size)


class Machine:
    """Runs functions on symbols, along one path; `decisions` are those at branches that may go both ways."""

    def __init__(self, program, solver, calls, decisions=()):
        (self.functions, self.structs, _), self.solver, self.calls = program, solver, calls
        self.decisions, self.taken, self.fresh = list(decisions), [], 0
        self.cells = []  # bit vectors, and unbounded integers of the same value

    def new(self, prefix, sort=None):
        self.fresh += 1
        name = f"{prefix}!{self.fresh}"
        return z3.Int(name) if sort is None else z3.BitVec(name, sort)

    def branch(self, condition):
        """Return a condition as True or False, and assume it."""
        condition = z3.simplify(condition)
        if z3.is_true(condition) or z3.is_false(condition):
            return z3.is_true(condition)
        yes, no = self.solver.possible(condition), self.solver.possible(z3.Not(condition))
        if yes and no:
            i = len(self.taken)
            choice = self.decisions[i] if i < len(self.decisions) else True
            self.taken.append(choice)
        else:
            choice = yes
        self.solver.facts.append(condition if choice else z3.Not(condition))
        return choice

    # Types and memory

    def size(self, kind):
        if kind.endswith("*") or kind == "ptr":
            return 8
        if kind in SIZES:
            return SIZES[kind]
        if found := re.match(r"[<\[](\d+) x (.*)[>\]]$", kind):
            return int(found.group(1)) * self.size(found.group(2))
        return self.fields(kind)[-1]

    def alignment(self, kind):
        if found := re.match(r"\[(\d+) x (.*)\]$", kind):
            return self.alignment(found.group(2))
        if kind.startswith("%") and not kind.endswith("*"):
            return max(self.alignment(part) for part in split(self.structs[kind]))
        return self.size(kind)

    def fields(self, kind):
        """Return the offsets of a structure's fields, and its size."""
        offsets, end, most = [], 0, 1
        for part in split(self.structs[kind]):
            alignment = self.alignment(part)
            end = -(-end // alignment) * alignment
            offsets.append(end)
            end, most = end + self.size(part), max(most, alignment)
        return [*offsets, -(-end // most) * most]

    def offsets(self, kind):
        """Return the offset of each field of a structure of the headers, by its name."""
        return dict(zip(members(kind), self.fields(f"%struct.{kind}")[:-1], strict=True))

    def lanes(self, kind):
        """Return how many lanes a type has, and each one's type; 0 for a scalar."""
        found = re.match(r"<(\d+) x (.*)>$", kind)
        return (int(found.group(1)), found.group(2)) if found else (0, kind)

    def load(self, pointer, kind):
        n, lane = self.lanes(kind)
        if n:
            size = self.size(lane)
            return [self.load(Pointer(pointer.memory, pointer.at + i * size), lane) for i in range(n)]
        size = self.size(kind)
        if pointer.at in pointer.memory and pointer.memory[pointer.at][0] == size:
            return pointer.memory[pointer.at][1]
        parts, at = [], pointer.at  # a larger number of smaller ones, little-endian
        while at < pointer.at + size:
            step, value = pointer.memory[at]
            parts.insert(0, value)
            at += step
        return z3.Concat(*parts)

    def store(self, pointer, kind, value):
        n, lane = self.lanes(kind)
        if n:
            for i in range(n):
                self.store(Pointer(pointer.memory, pointer.at + i * self.size(lane)), lane, value[i])
            return
        size = self.size(kind)
        for at in [at for at in pointer.memory if pointer.at < at < pointer.at + size]:
            del pointer.memory[at]
        pointer.memory[pointer.at] = size, value

    # Operands

    def constant(self, text, kind):
        n, lane = self.lanes(kind)
        if n:
            if text in ("zeroinitializer", "poison", "undef"):
                return [self.constant(text, lane)] * n
            return [self.constant(part.split()[-1], lane) for part in split(text[1:-1])]
        if kind.endswith("*") or kind == "ptr":
            return None
        if kind == "double":
            value = 0.0 if text == "zeroinitializer" else number(text)
            whole = value >= 0 and value.is_integer()
            return Whole(z3.IntVal(int(value)), z3.IntVal(int(value))) if whole else ("constant", value)
        if kind == "float":
            return z3.BitVec(f"float {text}", 32)
        value = {"true": 1, "false": 0, "zeroinitializer": 0, "poison": 0, "undef": 0}.get(text)
        return bits(int(text) if value is None else value, int(kind[1:]))

    def value(self, text, kind, names):
        return names[text] if text.startswith("%") else self.constant(text, kind)

    def typed(self, text, names):
        """Return the value of 'type flags name', and its type."""
        kind = type_of(text)
        return self.value(text.split()[-1] if text[-1] not in ">" else text[len(kind) :].strip(), kind, names), kind

    def pair(self, text, names):
        """Return the operands of 'flags type a, b', and the type of each lane."""
        first, second = split(
            re.sub(r"^(?:nsw|nuw|exact|fast|reassoc|nnan|ninf|inbounds) ", "", re.sub(r"^(?:nsw|nuw|exact) ", "", text))
        )
        a, kind = self.typed(first, names)
        return a, self.value(second, kind, names), kind

    # Running

    def call(self, name, arguments):
        if name in self.calls:
            return self.calls[name](self, *arguments)
        parameters, label, blocks = self.functions[name]
        names, before = dict(zip(parameters, arguments, strict=True)), None
        for _ in range(10_000):
            held = {}
            for one in blocks[label]:
                if one.opcode != "phi":
                    break
                kind = type_of(one.text)
                for part in re.findall(r"\[ (.*?), %([\w.]+) \](?:,|$)", one.text[len(kind) :]):
                    if part[1] == before:
                        held[one.name] = self.value(part[0], kind, names)
            names.update(held)
            for one in blocks[label]:
                if one.opcode == "phi":
                    continue
                if one.opcode == "ret":
                    return None if one.text == "void" else self.typed(one.text, names)[0]
                if one.opcode == "br":
                    labels = re.findall(r"label %([\w.]+)", one.text)
                    before = label
                    if len(labels) == 2:
                        label = labels[not self.branch(self.value(one.text.split()[1].rstrip(","), "i1", names) == 1)]
                    else:
                        label = labels[0]
                    break
                names[one.name] = self.step(one, names)
        raise Failed(f"{name} does not end")

    def step(self, one, names):
        return getattr(self, "do_" + one.opcode)(one.text, names)

    def do_alloca(self, text, names):
        return Pointer({}, 0)

    def do_getelementptr(self, text, names):
        kind, *rest = split(text.removeprefix("inbounds "))
        pointer, _ = self.typed(rest[0], names)
        at = pointer.at
        for i, part in enumerate(rest[1:]):
            index = z3.simplify(self.typed(part, names)[0]).as_signed_long()
            if not i:
                at += index * self.size(kind)
            elif found := re.match(r"[<\[](\d+) x (.*)[>\]]$", kind):
                kind = found.group(2)
                at += index * self.size(kind)
            else:
                at, kind = at + self.fields(kind)[index], split(self.structs[kind])[index]
        return Pointer(pointer.memory, at)

    def do_load(self, text, names):
        kind, pointer = split(text)[:2]
        return self.load(self.typed(pointer, names)[0], kind)

    def do_store(self, text, names):
        value, pointer = split(text)[:2]
        value, kind = self.typed(value, names)
        self.store(self.typed(pointer, names)[0], kind, value)

    def cast(self, text, names, change):
        source, kind = text.split(" to ")
        value, of = self.typed(source, names)
        n, lane = self.lanes(kind)
        if n:
            return [change(part, self.lanes(of)[1], lane) for part in value]
        return change(value, of, kind)

    def do_bitcast(self, text, names):
        source, kind = text.split(" to ")
        value, of = self.typed(source, names)
        if isinstance(value, Pointer) or value is None:
            return value
        if self.lanes(kind)[0] == self.lanes(of)[0]:
            return value
        memory = Pointer({}, 0)
        self.store(memory, of, value)
        return self.load(memory, kind)

    def do_sext(self, text, names):
        return self.cast(text, names, lambda x, of, to: z3.SignExt(int(to[1:]) - x.size(), x))

    def do_zext(self, text, names):
        return self.cast(text, names, lambda x, of, to: z3.ZeroExt(int(to[1:]) - x.size(), x))

    def do_trunc(self, text, names):
        return self.cast(text, names, lambda x, of, to: z3.Extract(int(to[1:]) - 1, 0, x))

    def do_fptosi(self, text, names):
        convert = z3.Function("int of float", z3.BitVecSort(32), z3.BitVecSort(32))
        return self.cast(text, names, lambda x, of, to: convert(x))

    def do_sitofp(self, text, names):
        return self.cast(text, names, lambda x, of, to: self.whole(self.integer(x)))

    def do_fptrunc(self, text, names):
        return self.cast(text, names, lambda x, of, to: self.new("float", 32))

    def do_freeze(self, text, names):
        return self.typed(text, names)[0]

    def binary(self, text, names, operation):
        a, b, kind = self.pair(text, names)
        if self.lanes(kind)[0]:
            return [operation(x, y) for x, y in zip(a, b, strict=True)]
        return operation(a, b)

    def signed(self, text, names, operation, overflows):
        """Arithmetic that must not overflow where the text says nsw."""

        def checked(x, y):
            if " nsw " in f" {text}":
                try:
                    self.integer(operation(x, y))
                except NoInteger:
                    self.solver.show(overflows(x, y), f"no overflow in {text}")
            return operation(x, y)

        return self.binary(text, names, checked)

    def do_add(self, text, names):
        return self.signed(
            text,
            names,
            lambda x, y: x + y,
            lambda x, y: z3.And(z3.BVAddNoOverflow(x, y, True), z3.BVAddNoUnderflow(x, y)),
        )

    def do_sub(self, text, names):
        return self.signed(
            text,
            names,
            lambda x, y: x - y,
            lambda x, y: z3.And(z3.BVSubNoOverflow(x, y), z3.BVSubNoUnderflow(x, y, True)),
        )

    def do_mul(self, text, names):
        return self.binary(text, names, lambda x, y: x * y)  # that products do not overflow, `integer` shows

    def do_sdiv(self, text, names):
        return self.binary(text, names, lambda x, y: x / y)

    do_udiv = lambda self, text, names: self.binary(text, names, z3.UDiv)  # noqa: E731
    do_shl = lambda self, text, names: self.binary(text, names, lambda x, y: x << y)  # noqa: E731
    do_ashr = lambda self, text, names: self.binary(text, names, lambda x, y: x >> y)  # noqa: E731
    do_lshr = lambda self, text, names: self.binary(text, names, z3.LShR)  # noqa: E731
    do_and = lambda self, text, names: self.binary(text, names, lambda x, y: x & y)  # noqa: E731
    do_or = lambda self, text, names: self.binary(text, names, lambda x, y: x | y)  # noqa: E731
    do_xor = lambda self, text, names: self.binary(text, names, lambda x, y: x ^ y)  # noqa: E731

    def do_icmp(self, text, names):
        how, rest = text.split(" ", 1)
        compare = {
            "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
            "slt": lambda x, y: x < y, "sle": lambda x, y: x <= y,
            "sgt": lambda x, y: x > y, "sge": lambda x, y: x >= y,
            "ult": z3.ULT, "ule": z3.ULE, "ugt": z3.UGT, "uge": z3.UGE,
        }[how]  # fmt: skip
        if isinstance(self.pair(rest, names)[0], (Pointer, type(None))):
            a, b, _ = self.pair(rest, names)
            return bits(int((a is b) == (how == "eq")), 1)
        return self.binary(rest, names, lambda x, y: z3.If(compare(x, y), bits(1, 1), bits(0, 1)))

    def do_select(self, text, names):
        condition, yes, no = (self.typed(part, names)[0] for part in split(text))
        choose = lambda c, x, y: z3.If(c == 1, x, y)  # noqa: E731
        if isinstance(yes, list):
            many = condition if isinstance(condition, list) else [condition] * len(yes)
            return [choose(*three) for three in zip(many, yes, no, strict=True)]
        return choose(condition, yes, no)

    def do_insertelement(self, text, names):
        vector, value, index = (self.typed(part, names)[0] for part in split(text))
        index = z3.simplify(index).as_long()
        return [*vector[:index], value, *vector[index + 1 :]]

    def do_extractelement(self, text, names):
        vector, index = (self.typed(part, names)[0] for part in split(text))
        return vector[z3.simplify(index).as_long()]

    def do_shufflevector(self, text, names):
        first, second, mask = split(text)
        both = [*self.typed(first, names)[0], *self.typed(second, names)[0]]
        return [both[z3.simplify(i).as_long()] for i in self.typed(mask, names)[0]]

    # Floating point

    def open_(self, operation, x, y):
        """A function of two floats, of which nothing else is known."""
        both = z3.BitVecSort(32)
        return z3.Function(operation, both, both, both)(x, y)

    def whole(self, exact):
        """Return the double of a whole number of at most 2**53: exact."""
        self.solver.show(z3.And(exact >= -EXACT, exact <= EXACT), "a whole number of at most 2**53")
        return Whole(exact, exact)

    def sum(self, x, y):
        self.solver.show(z3.And(x.exact >= 0, y.exact >= 0), "a sum of numbers that are not negative")
        made = Whole(self.new("sum"), x.exact + y.exact)
        self.solver.facts.append(made.fact())
        return made

    def do_fadd(self, text, names):
        def add(x, y):
            if isinstance(x, Whole) and isinstance(y, Whole):
                return self.sum(x, y)
            if z3.is_bv(x) and x.size() == 64 and y == ("constant", -(2.0**52)):
                return self.whole(self.integer(self.mantissa(x)))
            return self.open_("fadd", x, y) if z3.is_bv(x) else Unknown()

        return self.binary(text, names, add)

    def mantissa(self, x):
        """Return b of a double that is 2**52 + b by its bits, where 2**52 is taken off again; 0 <= b < 2**52."""
        if x.decl().kind() != z3.Z3_OP_BOR or MAGIC not in [
            z3.simplify(part).as_long() if z3.is_bv_value(z3.simplify(part)) else None for part in x.children()
        ]:
            raise Failed("a double made of bits is not 2**52 and a whole number")
        b = next(part for part in x.children() if not z3.is_bv_value(z3.simplify(part)))
        self.solver.show(self.integer(b) < 2**52, "a mantissa below 2**52")
        return b

    def do_fsub(self, text, names):
        return self.binary(text, names, lambda x, y: Unknown())

    def do_fmul(self, text, names):
        def multiply(x, y):
            if isinstance(x, Whole) and isinstance(y, Whole) and x.value is x.exact and y.value is y.exact:
                return self.whole(x.exact * y.exact)
            return self.open_("fmul", x, y) if z3.is_bv(x) else Unknown()

        return self.binary(text, names, multiply)

    def do_fdiv(self, text, names):
        return self.binary(text, names, lambda x, y: Unknown())

    def do_fcmp(self, text, names):
        how, rest = text.split(" ", 1)

        def compare(x, y):
            if isinstance(x, Whole) and isinstance(y, Whole):  # which are no NaN
                relation = {"gt": x.value > y.value, "le": x.value <= y.value, "lt": x.value < y.value,
                            "ge": x.value >= y.value}[how[1:]]  # fmt: skip
                return z3.If(relation, bits(1, 1), bits(0, 1))
            if z3.is_bv(x):
                both = z3.BitVecSort(32)
                return z3.If(z3.Function(f"float {how}", both, both, z3.BoolSort())(x, y), bits(1, 1), bits(0, 1))
            return z3.If(z3.Bool(f"unknown {self.new('')}"), bits(1, 1), bits(0, 1))

        return self.binary(rest, names, compare)

    def integer(self, x):
        """Return a bit vector as an unbounded integer, shown not to wrap around; `cells` are what is known."""
        x = z3.simplify(x) if z3.is_bv_value(z3.simplify(x)) else x
        if z3.is_bv_value(x):
            return z3.IntVal(x.as_signed_long())
        for cell, number in self.cells:
            if x.eq(cell):
                return number
        kind = x.decl().kind()
        if kind == z3.Z3_OP_SIGN_EXT:
            return self.integer(x.arg(0))
        if kind in (z3.Z3_OP_BADD, z3.Z3_OP_BSUB, z3.Z3_OP_BMUL, z3.Z3_OP_BSDIV, z3.Z3_OP_BSDIV_I):
            a, b = map(self.integer, x.children())
            result = {z3.Z3_OP_BADD: a + b, z3.Z3_OP_BSUB: a - b, z3.Z3_OP_BMUL: a * b}.get(kind, a / b)
            if kind in (z3.Z3_OP_BSDIV, z3.Z3_OP_BSDIV_I):
                self.solver.show(z3.And(a >= 0, b > 0), "a division of positive numbers")
            half = 2 ** (x.size() - 1)
            self.solver.show(z3.And(result >= -half, result < half), f"no overflow of {x.size()} bits in {kind}")
            return result
        if kind == z3.Z3_OP_ITE:
            condition, yes, no = x.children()
            return z3.If(self.truth(condition), self.integer(yes), self.integer(no))
        if kind == z3.Z3_OP_EXTRACT and x.params()[1] == 0:
            result, half = self.integer(x.arg(0)), 2 ** (x.size() - 1)
            self.solver.show(z3.And(result >= -half, result < half), "a number that is cut off fits")
            return result
        for cell, number in self.cells:
            if x.size() >= cell.size() and str(cell) in names(x):
                proof = z3.Solver()
                proof.add(x != z3.SignExt(x.size() - cell.size(), cell))
                if proof.check() == z3.unsat:
                    return number
        raise NoInteger(f"no integer is known of {str(x)[:200]}")

    def truth(self, condition):
        """Return a comparison of bit vectors as one of unbounded integers."""
        kind, (a, b) = condition.decl().kind(), condition.children()
        if kind == z3.Z3_OP_EQ and a.decl().kind() == z3.Z3_OP_ITE:  # a truth value that was made a bit
            return self.truth(a.arg(0))
        compare = {
            z3.Z3_OP_SLT: lambda x, y: x < y, z3.Z3_OP_SLEQ: lambda x, y: x <= y, z3.Z3_OP_EQ: lambda x, y: x == y,
            z3.Z3_OP_SGT: lambda x, y: x > y, z3.Z3_OP_SGEQ: lambda x, y: x >= y,
        }[kind]  # fmt: skip
        return compare(self.integer(a), self.integer(b))

    def do_call(self, text, names):
        name = re.search(r"@([\w.]+)\(", text).group(1)
        arguments = [
            self.typed(part, names)[0] for part in split(text[text.index("(", text.index("@")) + 1 : text.rindex(")")])
        ]
        kind = re.match(r"llvm\.(\w+)", name)
        if name not in self.calls and kind:
            return self.intrinsic(kind.group(1), arguments)
        return self.call(name, arguments)

    def intrinsic(self, name, arguments):
        if name in ("lifetime", "prefetch", "assume"):
            return None
        if name == "sqrt":
            return Unknown()
        if name == "memset":
            pointer, _, size = arguments[:3]
            for at in pointer.memory:
                if pointer.at <= at < pointer.at + z3.simplify(size).as_long():
                    pointer.memory[at] = pointer.memory[at][0], bits(0, 8 * pointer.memory[at][0])
            return None
        choose = {
            "smax": lambda x, y: z3.If(x > y, x, y), "smin": lambda x, y: z3.If(x < y, x, y),
            "umin": lambda x, y: z3.If(z3.ULT(x, y), x, y), "umax": lambda x, y: z3.If(z3.UGT(x, y), x, y),
        }[name]  # fmt: skip
        a, b = arguments
        return [choose(x, y) for x, y in zip(a, b, strict=True)] if isinstance(a, list) else choose(a, b)


MAGIC = 0x4330000000000000


def number(text):
    """Return a double as LLVM writes it."""
    import struct

    if text.startswith("0x"):
        return struct.unpack(">d", int(text[2:], 16).to_bytes(8, "big"))[0]
    return float(text)


def type_of(text):
    """Return the type at the beginning of an operand."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "<[{(") - (c in ">]})")
        if c == " " and not depth:
            return text[:i]
    return text


def paths(run):
    """Run a function of decisions on all paths; it returns the machine. Return how many there are."""
    waiting, n = [()], 0
    while waiting:
        decisions = waiting.pop()
        taken = run(decisions).taken
        n += 1
        for i in range(len(decisions), len(taken)):
            waiting.append((*taken[:i], not taken[i]))
        if n > 2000:
            raise Failed("too many paths")
    return n
