"""Soft counts of a document: what `_kernels/soft_counts.h` adds has the norm bound at most, and nothing overflows."""

import z3
from llvm import MAGIC, Failed, Machine, Pointer, Solver, Whole, bits, compiled, names, paths, type_of, within

LARGEST_NORM = 2**24  # `e_step` refuses more
LANES = 16
TARGETS = {"plain": (4, 2), "avx2": (8, 4), "avx512": (16, 8)}  # cells and sums in a vector
# numbers of words, of topics, and of the topics that are kept; added or taken back
CASES = ((1, 3, 3, 1), (1, 3, 3, -1), (1, 3, 2, 1), (1, 3, 2, -1))
MORE = {"plain": (), "avx2": ((2, 3, 3, 1),), "avx512": ((1, 17, 17, 1),)}
DRIVER = """
#include "variational_step.h"
#define ALL(t) void scaled_##t(const variational_problem *p, document_scratch *a, const soft_sum *s, \\
    const int32_t *word, int64_t words, int32_t k, double squares) { \\
    add_scaled_soft_counts_##t(p, a, s, word, words, k, squares); }
ALL(plain) ALL(avx2) ALL(avx512)
void *new_sum(const variational_problem *p, int64_t n_words, int64_t *sum) { return soft_sum_new(p, n_words, sum); }
"""
SQUARE = z3.Function("square", z3.IntSort(), z3.IntSort())


def cells_of(argument, n):
    """Return the lanes of a vector that is passed by value or by address."""
    return argument if isinstance(argument, list) else [argument.memory[argument.at + 4 * i][1] for i in range(n)]


def squares(made, target):
    """For all cells of at most 2**24 + 1: their squares are added, and the lanes stay whole numbers."""
    n_cells, n_sums = TARGETS[target]
    cells = [z3.BitVec(f"c{i}", 32) for i in range(n_cells)]
    numbers = [z3.Int(f"n{i}") for i in range(n_cells)]
    sums = [Whole(z3.Int(f"s{j}"), z3.Int(f"t{j}")) for j in range(n_sums)]
    most = LARGEST_NORM + 1
    solver = Solver(*(z3.And(n >= -most, n <= most) for n in numbers), *(s.fact() for s in sums))
    x = z3.Int("x")
    solver.show(z3.Implies(z3.And(x >= -most, x <= most), z3.And(x * x >= 0, x * x <= most * most)), "a square")
    solver.cuts = [(n * n, z3.Int(f"square of {n}")) for n in numbers]
    solver.facts += [z3.And(square >= 0, square <= most * most) for _, square in solver.cuts]
    machine = Machine(made, solver, {})
    machine.cells = list(zip(cells, numbers, strict=True))
    memory = Pointer({8 * j: (8, s) for j, s in enumerate(sums)}, 0)
    by_value = type_of(made[2][f"add_squares_{target}"][0]).endswith(">")
    held = cells if by_value else Pointer({4 * i: (4, c) for i, c in enumerate(cells)}, 0)
    machine.call(f"add_squares_{target}", [held, memory])
    after = [memory.memory[8 * j][1] for j in range(n_sums)]
    for s in after:
        solver.show(s.fact(), "a sum of squares is a whole number")
    added = z3.Sum([s.exact for s in after]) - z3.Sum([s.exact for s in sums])
    solver.show(added == z3.Sum([n * n for n in numbers]), "what is added is the sum of squares")
    return solver.n_shown


def rounded(made, target, n_words, n_topics, kept, sign, decisions):
    """Run `add_rounded` on one word or two, with any numbers, and compare the sums before and after."""
    n_cells, n_sums = TARGETS[target]
    stride = -(-n_topics // LANES) * LANES
    norm, step = z3.BitVec("norm", 64), z3.Int("norm + 1")
    solver = Solver(norm >= 1, norm <= LARGEST_NORM, step >= 2, step <= LARGEST_NORM + 1)
    vectors = []

    def add_squares(machine, cells, sums):
        cells = cells_of(cells, n_cells)
        for c in cells:  # as a float may be any, so may be what it is rounded to
            any_ = [(x, z3.BitVec("any", 32)) for x in applications(c, "int of float")]
            held = z3.And(z3.SignExt(32, c) <= norm + 1, z3.SignExt(32, c) >= -norm - 1)
            machine.solver.show(z3.substitute(held, *any_), "a cell is held at the norm and one")
            number = z3.Int(f"cell{len(machine.cells)}")
            machine.cells.append((c, number))
            machine.solver.facts.append(z3.And(number <= step, number >= -step))
        vectors.append(cells)
        parts = [machine.new("part") for _ in range(n_sums)]
        of_cells = [SQUARE(machine.integer(c)) for c in cells]
        machine.solver.facts += [x >= 0 for x in (*parts, *of_cells)]
        machine.solver.facts.append(z3.Sum(parts) == z3.Sum(of_cells))
        for j, part in enumerate(parts):
            old = sums.memory[sums.at + 8 * j][1]
            new = Whole(machine.new("sum"), old.exact + part)
            machine.solver.facts.append(new.fact())
            sums.memory[sums.at + 8 * j] = 8, new

    machine = Machine(made, solver, {f"add_squares_{target}": add_squares}, decisions)

    def structure(kind, **values):
        offsets = machine.offsets(kind)
        return Pointer({offsets[name]: held for name, held in values.items()}, 0)

    def numbers(name, n, size, first=0):
        return Pointer({size * (first + i): (size, z3.BitVec(f"{name}{i}", 8 * size)) for i in range(n)}, 0)

    words, topics = [2, 0][:n_words], list(range(n_topics - 1, -1, -1))[:kept]  # in any order, none twice
    recent, sums, uses, rows, start = Pointer({}, 0), Pointer({}, 0), Pointer({}, 0), Pointer({}, 0), {}
    most_uses = z3.BitVec("most_uses", 32)
    solver.facts += [most_uses >= 1, most_uses <= 65535]
    for i, w in enumerate(words):
        room, used = z3.Int(f"room{w}"), z3.BitVec(f"used{w}", 16)
        # `used` documents are in the row, each at most norm + 1 in a cell, and one more has room: `uses`
        solver.facts += [room >= 0, room + step <= 2**31 - 1, z3.ULT(z3.ZeroExt(16, used), most_uses)]
        uses.memory[2 * w] = 2, used
        rows.memory[8 * i] = 8, numbers(f"row{w}.", stride, 4)
        for k in range(stride):
            cell, number = z3.BitVec(f"recent{w}.{k}", 32), z3.Int(f"recent of {w}, {k}")
            solver.facts += [number <= room, number >= -room]
            machine.cells.append((cell, number))
            recent.memory[4 * (w * stride + k)] = 4, cell
            if k < n_topics:
                total, number = z3.BitVec(f"sum{w}.{k}", 64), z3.Int(f"sum of {w}, {k}")
                solver.facts += [number >= -(2**61), number <= 2**61]
                machine.cells.append((total, number))
                sums.memory[8 * (w * n_topics + k)] = 8, total
                start[w, k] = cell, total, room
    problem = structure(
        "variational_problem", norm=(8, norm), n_topics=(4, bits(n_topics, 32)), stride=(4, bits(stride, 32))
    )
    scratch = structure(
        "document_scratch", theta=(8, numbers("theta", stride, 4)), row=(8, rows), cell=(8, Pointer({}, 0)),
        topic=(8, Pointer({4 * j: (4, bits(k, 32)) for j, k in enumerate(topics)}, 0)),
        ratio=(8, numbers("ratio", n_words, 4)),
    )  # fmt: skip
    soft_sum = structure("soft_sum", sum=(8, sums), recent=(8, recent), uses=(8, uses), most_uses=(4, most_uses))
    word = Pointer({4 * i: (4, bits(w, 32)) for i, w in enumerate(words)}, 0)
    n = -(-kept // LANES)
    scale = z3.BitVec("scale", 32)
    found = machine.call(
        f"add_rounded_{target}",
        [problem, scratch, soft_sum, word, bits(n_words, 64), bits(kept, 32), bits(n, 32), scale, bits(sign, 32)],
    )
    groups, changed = n * LANES // n_cells, []
    for i, w in enumerate(words):
        if recent.memory[4 * w * stride][1] is start[w, 0][0] and uses.memory[2 * w][1].eq(z3.BitVec(f"used{w}", 16)):
            cells = [bits(0, 32)] * n * LANES  # no topic explains the word
        else:
            cells, vectors = [c for vector in vectors[:groups] for c in vector], vectors[groups:]
            changed += cells
        ratio = z3.BitVec(f"ratio{i}", 32)
        for j, k in enumerate(range(n_topics) if kept == n_topics else topics):
            before, total, room = start[w, k]
            now, sum_now = recent.memory[4 * (w * stride + k)][1], sums.memory[8 * (w * n_topics + k)][1]
            change = sum_now + z3.SignExt(32, now) - total - z3.SignExt(32, before)
            solver.show(machine.integer(change) == sign * machine.integer(cells[j]), "a sum changes by the cell")
            grown = machine.integer(now)
            solver.show(z3.And(grown <= room + step, grown >= -room - step), "a recent sum grows by a norm at most")
            theta, row = z3.BitVec(f"theta{j}", 32), z3.BitVec(f"row{w}.{j}", 32)
            if more := names(cells[j]) - {*map(str, (theta, row, ratio, scale)), "norm"}:
                raise Failed(f"a cell depends on {more}")
        for k in set(range(n_topics)) - set(range(n_topics) if kept == n_topics else topics):
            if recent.memory[4 * (w * stride + k)][1] is not start[w, k][0] and not is_flushed(uses, w):
                raise Failed("a topic that the document does not have changes")
    if vectors:
        raise Failed("squares of other cells are added")
    exact = z3.Sum([SQUARE(machine.integer(c)) for c in changed]) if changed else z3.IntVal(0)
    solver.show(within(found.value, exact), "what is returned is the sum of squares, or beyond 2**52")
    machine.n_shown = solver.n_shown
    return machine


def applications(term, function):
    """Return the different applications of a function in a term."""
    if z3.is_app(term) and term.decl().name() == function:
        return [term]
    found = {x.get_id(): x for child in term.children() for x in applications(child, function)}
    return list(found.values())


def is_flushed(uses, w):
    return z3.is_bv_value(z3.simplify(uses.memory[2 * w][1]))


def attempts(made, target, decisions):
    """`add_scaled_soft_counts`: what is left when it returns was added once, and has the norm bound, or is nothing."""
    norm, exact = z3.BitVec("norm", 64), z3.Int("norm as a number")
    solver = Solver(exact >= 0, exact <= LARGEST_NORM)
    left, accepted = [], []

    def add_rounded(machine, p, a, s, word, words, k, n, scale, sign):
        sign = z3.simplify(sign).as_signed_long()
        machine.solver.show(n == (z3.BitVec("k", 32) + 15) / 16, "all vectors of the document's topics")
        if not (words.eq(arguments[4]) and k.eq(arguments[5])):
            raise Failed("other words or topics are added")
        found = Whole(machine.new("found"), machine.new("squares"))
        machine.solver.facts.append(found.fact())
        if sign == 1:
            left.append((scale, found))
        elif any(same := [i for i, (x, _) in enumerate(left) if x.eq(scale)]):
            left.pop(same[0])
        elif left and left[0][0].eq(scale):
            left.pop(0)
        else:
            raise Failed("something else is taken back than was added")
        accepted.append(sign)
        return found

    machine = Machine(made, solver, {f"add_rounded_{target}": add_rounded, "sqrt": lambda *_: None}, decisions)
    machine.cells = [(norm, exact)]
    problem = Pointer({machine.offsets("variational_problem")["norm"]: (8, norm)}, 0)
    empty, k = Pointer({}, 0), z3.BitVec("k", 32)
    solver.facts += [k >= 1, k <= 2**30]
    arguments = [problem, empty, empty, empty, z3.BitVec("words", 64), k, None]
    machine.call(f"add_scaled_soft_counts_{target}", arguments)
    if len(left) > 1:
        raise Failed("soft counts are added twice")
    for _, found in left:
        solver.show(found.exact <= exact * exact, "the sum of squares of what was added is at most the norm, squared")
    machine.n_shown = solver.n_shown + 1
    return machine


def magic():
    """A double of the bits 2**52 + b, less 2**52, is b, for all b below 2**52: in the floating point of z3."""
    b, double = z3.BitVec("b", 64), z3.Float64()
    made = z3.fpAdd(z3.RNE(), z3.fpBVToFP(b | MAGIC, double), z3.FPVal(-(2.0**52), double))
    solver = z3.SolverFor("QF_FP")
    solver.add(z3.ULT(b, 2**52), z3.Not(z3.fpEQ(made, z3.fpUnsignedToFP(z3.RNE(), b, double))))
    if solver.check() != z3.unsat:
        raise Failed("a double made of bits")
    return 1


def uses(made):
    """`soft_sum_new`: a row that holds `most_uses` documents, each cell norm + 1 at most, does not overflow."""
    norm, exact, stride = z3.BitVec("norm", 64), z3.Int("norm as a number"), z3.BitVec("stride", 32)
    shown = 0

    def run(decisions):
        nonlocal shown
        solver = Solver(exact >= 1, exact <= LARGEST_NORM, norm >= 1, norm <= LARGEST_NORM)
        new = {"calloc": lambda m, *_: Pointer({}, 0), "aligned_alloc": lambda m, *_: Pointer({}, 0)}
        skip = {"llvm.memset.p0i8.i64": lambda *_: None, "llvm.memset.p0.i64": lambda *_: None}
        machine = Machine(made, solver, new | skip, decisions)
        machine.cells = [(norm, exact)]
        offsets = machine.offsets("variational_problem")
        problem = Pointer({offsets["norm"]: (8, norm), offsets["stride"]: (4, stride)}, 0)
        found = machine.call("new_sum", [problem, z3.BitVec("n_words", 64), Pointer({}, 0)])
        most = found.memory[machine.offsets("soft_sum")["most_uses"]][1]
        most = machine.integer(most)
        solver.show(z3.And(most * (exact + 1) <= 2**31 - 1, most >= 1, most <= 65535), "a row has room")
        shown += solver.n_shown
        return machine

    paths(run)
    # and from one document to the next: u * step is what u documents are in a cell at most
    u, m, step = z3.Ints("u m step")
    Solver(u >= 0, u < m, step >= 1, m * step <= 2**31 - 1).show(
        z3.And(u * step + step <= 2**31 - 1, u * step + step == (u + 1) * step), "one more document has room"
    )
    return shown + 1


def prove(mutation=None):
    """Prove all of it; return how much was shown."""
    made = compiled(DRIVER, mutation)
    n_shown = uses(made) + magic()
    n_paths = 0
    for target in TARGETS:
        n_shown += squares(made, target)
        for case in (*CASES, *MORE[target]):
            shown = []
            n_paths += paths(lambda d, f=shown, a=(made, target, *case): note(rounded(*a, d), f))
            n_shown += sum(shown)
        shown = []
        n_paths += paths(lambda d, f=shown, t=target: note(attempts(made, t, d), f))
        n_shown += sum(shown)
    return f"{n_shown} claims on {n_paths} paths of three copies"


def note(machine, shown):
    shown.append(machine.n_shown)
    return machine


MUTANTS = {
    "a cell beyond the norm is not held": ("soft_counts.h", "(most & over)", "(cell & over)"),
    "twice the square of the norm is accepted": ("soft_counts.h", "scale, 1) <= most)", "scale, 1) <= 2 * most)"),
    "other soft counts are taken back": (
        "soft_counts.h",
        "(take_back)(p, a, s, word, words, k, scale)",
        "(take_back)(p, a, s, word, words, k, 0.99f * scale)",
    ),
    "squares of half of the cells are forgotten": (
        "soft_counts.h",
        "_mm256_mul_epi32(odd, odd)",
        "_mm256_mul_epi32(odd, _mm256_setzero_si256())",
    ),
    "a row is flushed too late": ("variational_step.h", "INT32_MAX / (p->norm + 1)", "UINT32_MAX / (p->norm + 1)"),
    "a document is not counted before a row is flushed": (
        "soft_counts.h",
        "++s->uses[w] == s->most_uses",
        "s->uses[w] == s->most_uses",
    ),
}
