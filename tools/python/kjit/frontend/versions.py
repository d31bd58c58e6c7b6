"""Splits a Python variable whose assignments have different types, such as `a = a.reshape(6)`, into
several variables of the kernel IR, which have one type each.

Numba gives each assignment its own type, and joins types only where two values of a variable meet:
after a branch and at a loop's head. This is static single assignment (Cytron et al., 1991) for a
syntax tree without jumps. Each assignment is a version of its variable. A meeting (a phi node) is a
version, too, to which the branches copy their versions. A version that is only copied to a meeting
is united with the meeting, so variables with a single type are not split.
"""

import ast

from . import scope

_CLOSED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef, ast.NamedExpr)
_PLAIN = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Pass, ast.Break, ast.Continue),
    *scope.COMPOUND,
)


class _Plain(ast.NodeTransformer):
    def visit_AnnAssign(self, statement):
        plain = ast.Pass() if statement.value is None else ast.Assign([statement.target], statement.value)
        return ast.copy_location(plain, statement)


def without_annotations(body):
    """Returns the statements with plain assignments in place of annotated ones, because Numba
    ignores annotations. The statements are copied if one has an annotation."""
    if not any(isinstance(node, ast.AnnAssign) for statement in body for node in ast.walk(statement)):
        return body
    return [_Plain().visit(scope.copied(statement)) for statement in body]


def split(body, parameters, whole=()):
    """Returns the statements with variables split. The parts of a variable `a` are called a.1, a.2
    and so on. The statements are copied if a variable is split. A compound assignment that reads
    another part than it writes becomes a plain assignment with the attribute is_compound. whole:
    variables that are not split."""
    if not all(isinstance(node, _PLAIN) for s in body for node in ast.walk(s) if isinstance(node, ast.stmt)):
        return body
    first = _Versions(parameters, body, whole)
    if not first.find():
        return body
    body = scope.copied(body)
    found = _Versions(parameters, body, whole)
    found.find()
    return found.rewrite(body)


class _Version:
    """A value of a variable. sources: the versions that come together in a meeting; is_used:
    whether an expression reads it."""

    def __init__(self, name, is_meeting=False):
        self.name, self.is_meeting, self.sources, self.feeds = name, is_meeting, [], []
        self.is_used, self.is_live, self.same = False, False, self

    def root(self):
        version = self
        while version.same is not version:
            version = version.same
        return version

    def join(self, other):
        self.root().same = other.root()


class _Versions:
    """Finds and unites the versions of variables.

    nodes: (name, its version) for each name in the statements. copies: (block, the statement before
    which the copy goes or None for the end of the block, a statement with the location, meeting,
    version) for each copy to a meeting. dead: (block, the number of its statements that may run).
    """

    def __init__(self, parameters, body, whole):
        self.body, self.nodes, self.copies, self.loops, self.all = body, [], [], [], []
        self.compound, self.parameters, self.dead = [], {}, []
        stores = {}
        closed = set(whole)
        for node in (n for s in body for n in ast.walk(s)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stores[node.id] = stores.get(node.id, 0) + 1
            elif isinstance(node, _CLOSED):
                closed |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        least = {name: 1 if name in parameters else 2 for name in stores}
        self.names = {name for name, count in stores.items() if count >= least[name] and name not in closed}
        for name in self.names & set(parameters):
            self.parameters[name] = self.new(name)

    def new(self, name, is_meeting=False):
        version = _Version(name, is_meeting)
        self.all.append(version)
        return version

    # ---- the walk: an environment maps variables to versions; None is the environment of
    # unreachable code ----

    def find(self):
        """Returns whether a variable has several parts."""
        if not self.names:
            return False
        self.block(self.body, dict(self.parameters))
        self.unite()
        return len({v.root() for v in self.all if self.is_kept(v)}) > len({v.name for v in self.all if self.is_kept(v)})

    def block(self, body, around):
        for at, statement in enumerate(body):
            if around is None:
                self.dead.append((body, at))
                break
            method = getattr(self, "of_" + type(statement).__name__, self.simple)
            around = method(body, statement, around)
        return around

    def read(self, node, around):
        for name in ast.walk(node) if node is not None else ():
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) and name.id in around:
                around[name.id].is_used = True
                self.nodes.append((name, around[name.id]))

    def store(self, target, around):
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.id in self.names:
                around[name.id] = self.new(name.id)
                self.nodes.append((name, around[name.id]))

    def simple(self, body, statement, around):
        if isinstance(statement, ast.Assign):
            self.read(statement.value, around)
            for target in statement.targets:
                self.read(target, around)  # reads the indices
            for target in statement.targets:
                self.store(target, around)
            return around
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            self.read(statement.value, around)
            if name in around:
                around[name].is_used = True
                before = around[name]
                self.store(statement.target, around)
                self.compound.append((body, statement, before, around[name]))
            else:
                self.store(statement.target, around)
            return around
        self.read(statement, around)
        if isinstance(statement, (ast.Break, ast.Continue)):
            self.meet(body, statement, statement, around, self.loops[-1])
        return None if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)) else around

    def meet(self, body, statement, place, around, meetings):
        """Makes the current version of each variable a source of the variable's meeting. place: the
        statement before which the version is copied to the meeting; None means the end of the block."""
        for name, meeting in meetings.items():
            version = around.get(name)
            if version is not None and version is not meeting:
                meeting.sources.append(version)
                version.feeds.append(meeting)
                self.copies.append((body, statement, place, meeting, version))

    def of_If(self, body, statement, around):
        self.read(statement.test, around)
        ends = [self.block(block, dict(around)) for block in (statement.body, statement.orelse)]
        if None in ends:
            return ends[0] or ends[1]
        result, meetings = {}, {}
        for name in {**ends[0], **ends[1]}:
            one, other = ends[0].get(name), ends[1].get(name)
            result[name] = one or other
            if one is not other:
                result[name] = meetings[name] = self.new(name, True)
        for block, end in zip((statement.body, statement.orelse), ends):
            self.meet(block, None, statement, end, meetings)
        return result

    def loop(self, body, statement, around):
        inside = [*statement.body, *statement.orelse, *([statement.target] if isinstance(statement, ast.For) else [])]
        stored = {n.id for s in inside for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        meetings = {name: self.new(name, True) for name in sorted(stored & self.names)}
        self.meet(body, statement, statement, around, meetings)
        at_head = {**around, **meetings}
        if isinstance(statement, ast.While):
            self.read(statement.test, at_head)
        self.loops.append(meetings)
        inner = dict(at_head)
        if isinstance(statement, ast.For):
            self.store(statement.target, inner)
        end = self.block(statement.body, inner)
        self.loops.pop()
        if end is not None:
            self.meet(statement.body, None, statement, end, meetings)
        if statement.orelse:
            end = self.block(statement.orelse, dict(at_head))
            if end is not None:
                self.meet(statement.orelse, None, statement, end, meetings)
        return at_head

    def of_For(self, body, statement, around):
        self.read(statement.iter, around)
        return self.loop(body, statement, around)

    def of_While(self, body, statement, around):
        return self.loop(body, statement, around)

    # ---- uniting versions ----

    def is_kept(self, version):
        return not version.is_meeting or version.is_live

    def unite(self):
        pending = [v for v in self.all if v.is_used]
        while pending:
            version = pending.pop()
            if version.is_live:
                continue
            version.is_live = True
            pending += version.sources
        for version in self.all:
            version.feeds = [m for m in version.feeds if m.is_live]
        for version in self.all:
            if version.is_meeting and version.is_live:
                sources = {s.root() for s in version.sources} - {version.root()}
                if len(sources) == 1:
                    version.join(sources.pop())
        for version in self.all:
            if not version.is_used and version.feeds:
                version.join(version.feeds[0])

    # ---- the result ----

    def rewrite(self, body):
        numbers = {}
        names = {}
        for version in self.all:
            root = version.root()
            if self.is_kept(version) and id(root) not in names:
                number = numbers[version.name] = numbers.get(version.name, -1) + 1
                names[id(root)] = f"{version.name}.{number}" if number else version.name
        for node, version in self.nodes:
            node.id = names[id(version.root())]
        for block, at in self.dead:
            del block[at:]
        for block, statement, before, _ in self.compound:
            source = names[id(before.root())]
            if source != statement.target.id:
                read = ast.copy_location(ast.Name(source, ast.Load()), statement.target)
                value = ast.copy_location(ast.BinOp(read, statement.op, statement.value), statement)
                plain = ast.copy_location(ast.Assign([statement.target], value), statement)
                plain.is_compound = True
                block[next(i for i, s in enumerate(block) if s is statement)] = plain
        for block, statement, place, meeting, version in self.copies:
            if meeting.is_live and meeting.root() is not version.root():
                self.insert(block, statement, place, names[id(meeting.root())], names[id(version.root())])
        return body

    @staticmethod
    def insert(block, before, place, target, value):
        """Inserts `target = value` before a statement in a block or at its end."""
        at = len(block) if before is None else next(i for i, s in enumerate(block) if s is before)
        made = ast.Assign([ast.Name(target, ast.Store())], ast.Name(value, ast.Load()))
        for node in ast.walk(made):
            if isinstance(node, (ast.expr, ast.stmt)):
                ast.copy_location(node, place)
        block.insert(at, made)
