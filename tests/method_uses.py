"""Which methods of our classes does src use? The part of the dead code gate that looks at types, not only at names.

`task.cancel()` is no use of `Ledger.cancel`. Everything in src is annotated, so the class of most receivers can be read
from the code: parameters, fields, return values, and what is assigned from them. A container counts as what it contains
(`dict[str, Feed]` as Feed). A receiver whose class is not found counts as any class: a method is reported only if no
such receiver, and no receiver of its class, a base, a subclass or a protocol of the same methods, uses its name.
"""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Classes = frozenset[str]
Function = ast.FunctionDef | ast.AsyncFunctionDef
OTHERS: Classes = frozenset({"(not ours)"})  # what a library returned
ANY = None  # nothing is known
CALLING = {"sorted", "min", "max", "sort", "add_done_callback"}  # they call a lambda with what they work on
WRAPPERS = {"Future", "Task"}  # `Task[Any]` is a task, whatever its result is


@dataclass
class OwnClass:
    """A class of src: its bases by name, its methods, and the classes that its fields have."""

    path: Path
    bases: list[str]
    methods: dict[str, Function] = field(default_factory=dict)
    fields: dict[str, "Classes | None"] = field(default_factory=dict)
    is_protocol: bool = False

    def fits(self, other: "OwnClass") -> bool:
        """Whether the other class has whatever this protocol asks for."""
        return {name for name in self.methods if not name.startswith("__")} <= {*other.methods, *other.fields}


class Uses:
    """Reads all modules, then finds the methods that nobody uses."""

    def __init__(self, root: Path, paths: Iterable[Path]) -> None:
        self.root = root
        self.modules = {path: ast.parse(path.read_text("utf-8")) for path in paths}
        self.classes: dict[str, list[OwnClass]] = defaultdict(list)
        self.functions: dict[str, list[Function]] = defaultdict(list)
        self.aliases: dict[str, ast.expr] = {}
        self._ancestors: dict[str, frozenset[str]] = {}
        self.type_variables: set[str] = {"Any", "object", "Self"}
        self.of_any: set[str] = set()  # names used on receivers of unknown class
        self.dynamic: set[str] = set()  # classes whose methods are looked up by a computed name
        self.of_class: dict[str, set[str]] = defaultdict(set)  # method -> classes of its receivers
        for path, tree in self.modules.items():
            self._define(path, tree)
        for final in (False, False, True):  # fields first: what they are assigned from may be other fields
            for path, tree in self.modules.items():
                _Reader(self, path, tree, count=final).read()

    def unused_methods(self) -> Iterator[tuple[Path, int, str, str]]:
        """(path, line, class, method) of what nobody uses. Special methods are Python's to call."""
        every = (node for tree in self.modules.values() for node in ast.walk(tree))
        strings = {node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for name, same_named in self.classes.items():
            for one in same_named:
                for method, function in one.methods.items():
                    if method in self.of_any or method.startswith("__"):
                        continue
                    if name in self.dynamic and method in strings:
                        continue
                    if not self._is_used(name, one, method) and not self._is_used_by_twin(one, method):
                        yield one.path, function.lineno, name, method

    def _is_used(self, name: str, one: OwnClass, method: str) -> bool:
        return any(self._is_related(name, one, user) for user in self.of_class[method])

    def _is_used_by_twin(self, one: OwnClass, method: str) -> bool:
        """Whether the method of a protocol is used in a class that fulfils it, perhaps through another protocol."""
        others = ((name, other) for name, same in self.classes.items() for other in same)
        return one.is_protocol and any(
            one.fits(other) and self._is_used(name, other, method) for name, other in others if not other.is_protocol
        )

    def _is_related(self, name: str, one: OwnClass, user: str) -> bool:
        """Whether a receiver of class `user` may be an object of this class."""
        if user == name:
            return True
        if name in self.ancestors(user) or user in self.ancestors(name):
            return True
        for other in self.classes.get(user, ()):
            if any(small.is_protocol and small.fits(large) for small, large in ((one, other), (other, one))):
                return True
        return False

    def ancestors(self, name: str) -> frozenset[str]:
        """The names of a class's bases, and of theirs."""
        if name not in self._ancestors:
            self._ancestors[name] = frozenset()  # until it is known: a class may be named like its base
            bases = [base for one in self.classes.get(name, ()) for base in one.bases]
            self._ancestors[name] = frozenset(bases).union(*map(self.ancestors, bases))
        return self._ancestors[name]

    def annotation(self, node: ast.expr | None) -> "Classes | None":
        """Every class that an annotation names, aliases resolved."""
        match node:
            case ast.Constant(value=str(text)):
                try:
                    return self.annotation(ast.parse(text, mode="eval").body)
                except SyntaxError:  # the text of a Literal or of Annotated
                    return OTHERS
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if name in self.type_variables:
                    return ANY
                alias = self.aliases.pop(name, None)  # taken out meanwhile: it may contain itself
                if alias is None:
                    return frozenset({name})
                meant = self.annotation(alias)
                self.aliases[name] = alias
                return _both(frozenset({name}), meant)
            case ast.Subscript(value=value, slice=inner):
                contained = self.annotation(inner)
                if contained is ANY and _last_name(value) in WRAPPERS:
                    contained = OTHERS
                return _both(self.annotation(value), contained)
            case ast.BinOp(left=left, right=right):
                return _both(self.annotation(left), self.annotation(right))
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                found: Classes | None = OTHERS
                for one in elts:
                    found = _both(found, self.annotation(one))
                return found
            case ast.Constant():
                return OTHERS
        return ANY

    def _define(self, path: Path, tree: ast.Module) -> None:
        methods = {part for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = [_last_name(base) for base in node.bases]
                one = OwnClass(path, bases, is_protocol="Protocol" in bases)
                for part in node.body:
                    if isinstance(part, Function):
                        one.methods.setdefault(part.name, part)
                self.classes[node.name].append(one)
            elif isinstance(node, Function) and node not in methods:
                self.functions[node.name].append(node)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                if _last_name(node.annotation) == "TypeAlias":
                    self.aliases[node.target.id] = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if isinstance(node.value, ast.Call) and _last_name(node.value.func) in ("TypeVar", "ParamSpec"):
                    self.type_variables.add(node.targets[0].id)
                elif isinstance(node.value, ast.Subscript | ast.BinOp):
                    self.aliases[node.targets[0].id] = node.value


class _Reader:
    """Walks one module with what is known of its names."""

    def __init__(self, uses: Uses, path: Path, tree: ast.Module, *, count: bool) -> None:
        self.uses, self.path, self.tree, self.count = uses, path, tree, count
        self.own: OwnClass | None = None
        self.own_name = ""
        self.names: dict[str, Classes | None] = {}
        self.given: dict[ast.AST, Classes | None] = {}  # what lambdas are called with
        self.outside: set[str] = set()  # names of other people's modules

    def read(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                self.outside |= {(one.asname or one.name).split(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                ours = self.uses.root.joinpath(*(node.module or "").split("."))
                outside = not (node.module or "").startswith("frontrow")
                is_module = [(ours / f"{one.name}.py").exists() or (ours / one.name).is_dir() for one in node.names]
                self.outside |= {
                    one.asname or one.name
                    for one, module in zip(node.names, is_module, strict=True)
                    if outside or module
                }
        self._block(self.tree.body)

    def _block(self, body: list[ast.stmt]) -> None:
        """Learn the names of a scope, then look at its uses, then go into its functions and classes."""
        inner = [node for statement in body for node in _same_scope(statement)]
        for _ in range(2):  # a name may be assigned from one that comes later
            self.bound: set[str] = set()
            for node in inner:
                self._learn(node)
        for node in inner:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self._count(node.attr, self.infer(node.value))
            elif isinstance(node, ast.Call) and _last_name(node.func) in CALLING:
                values = node.args[0] if isinstance(node.func, ast.Name) else node.func.value
                self.given |= {part: self.infer(values) for part in _lambdas(node)}
            elif isinstance(node, ast.Call) and _last_name(node.func) == "getattr":
                if isinstance(node.args[1], ast.Constant):
                    self._count(node.args[1].value, ANY)
                else:
                    self.uses.dynamic |= self.infer(node.args[0]) or frozenset()
            elif isinstance(node, ast.MatchClass):
                for word in node.kwd_attrs:
                    self._count(word, ANY)
        for node in inner:
            if isinstance(node, Function | ast.Lambda):
                self._function(node)
            elif isinstance(node, ast.ClassDef):
                self._class(node)

    def _class(self, node: ast.ClassDef) -> None:
        outer = self.own, self.own_name, self.names
        self.own_name, self.names = node.name, dict(self.names)
        self.own = next(one for one in self.uses.classes[node.name] if one.path == self.path)
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                self.own.fields[part.target.id] = self.uses.annotation(part.annotation)
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                self.own.fields[part.targets[0].id] = self.infer(part.value)
        self._block(node.body)
        self.own, self.own_name, self.names = outer

    def _function(self, node: "Function | ast.Lambda") -> None:
        outer, self.names = self.names, dict(self.names)
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        for number, one in enumerate(every):
            if number == 0 and one.annotation is None and self.own and one.arg in ("self", "cls"):
                self.names[one.arg] = frozenset({self.own_name})
            else:
                self.names[one.arg] = self.uses.annotation(one.annotation) if one.annotation else self.given.get(node)
        body = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
        self._block(body)
        self.names = outer

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            found = self.infer(node.value)
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for one, value in zip(target.elts, node.value.elts, strict=False):
                        self._bind(one, self.infer(value))
                else:
                    self._bind(target, found)
        elif isinstance(node, ast.AnnAssign):
            self._bind(node.target, self.uses.annotation(node.annotation))
        elif isinstance(node, ast.NamedExpr):
            self._bind(node.target, self.infer(node.value))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._loop(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind(node.optional_vars, self.infer(node.context_expr))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.names[node.name] = self.uses.annotation(node.type)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            self.names[node.name] = ANY

    def _loop(self, target: ast.expr, over: ast.expr) -> None:
        match target, over:
            case ast.Tuple(elts=names), ast.Call(func=ast.Name(id="zip"), args=lists) if len(names) == len(lists):
                for name, values in zip(names, lists, strict=True):
                    self._bind(name, self.infer(values))
            case ast.Tuple(elts=[number, name]), ast.Call(func=ast.Name(id="enumerate"), args=[values, *_]):
                self._bind(number, OTHERS)
                self._loop(name, values)
            case _:
                self._bind(target, self.infer(over))

    def _bind(self, target: ast.expr, found: "Classes | None") -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = _both(self.names[target.id], found) if target.id in self.bound else found
            self.bound.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self._bind(one, found)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, found)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            if self.own is not None and target.attr not in self.own.fields:
                self.own.fields[target.attr] = found
            elif self.own is not None and not self.count:
                declared = self.own.fields[target.attr]
                if declared in (ANY, OTHERS) and found:
                    self.own.fields[target.attr] = _both(declared, found)

    def _count(self, name: str, receivers: "Classes | None") -> None:
        if not self.count:
            return
        if receivers is ANY:
            self.uses.of_any.add(name)
        else:
            self.uses.of_class[name] |= receivers

    def infer(self, node: ast.expr) -> "Classes | None":
        """The classes of a value; ANY if nothing is known."""
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(self.infer(value), attr)
            case ast.Call(func=func, args=args, keywords=keywords):
                return self._call(func, [*args, *(one.value for one in keywords)])
            case ast.Await(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.infer(value)
            case ast.Subscript(value=value):
                return self.infer(value)
            case ast.IfExp(body=body, orelse=orelse):
                return _both(self.infer(body), self.infer(orelse))
            case ast.BoolOp(values=values):
                return self._all(values)
            case ast.BinOp(left=left, right=right):
                return self._all([left, right])
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
                return self._all(elts)
            case ast.Dict(values=values):
                return self._all(values)
            case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt) | ast.DictComp(value=elt):
                for part in node.generators:
                    self._loop(part.target, part.iter)
                return self.infer(elt)
            case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.UnaryOp() | ast.Lambda():
                return OTHERS
        return ANY

    def _all(self, values: Iterable[ast.expr]) -> "Classes | None":
        found: Classes | None = OTHERS
        for value in values:
            found = _both(found, self.infer(value))
        return found

    def _name(self, name: str) -> "Classes | None":
        if name in self.names:
            return self.names[name]
        if name in self.uses.classes:
            return frozenset({name})
        return OTHERS if name in self.outside or hasattr(builtins, name) else ANY

    def _attribute(self, receivers: "Classes | None", attr: str) -> "Classes | None":
        if receivers is ANY:
            return ANY
        if attr == "state" and receivers.isdisjoint(self.uses.classes):
            return ANY  # Starlette's: whatever was put there
        if receivers - OTHERS <= self.uses.classes.keys() and not any(self._has(one, attr) for one in receivers):
            return OTHERS if receivers == OTHERS else ANY  # `isinstance` has made it a subclass
        if not any(self._has(receiver, attr) for receiver in receivers):
            return receivers  # a library's: what it leads to is what it contains
        found: Classes | None = OTHERS
        for receiver in receivers:
            for name in (receiver, *self.uses.ancestors(receiver)):
                for one in self.uses.classes.get(name, ()):
                    if attr in one.fields:
                        found = _both(found, one.fields[attr])
                    elif attr in one.methods:
                        found = _both(found, self.uses.annotation(one.methods[attr].returns))
        return found

    def _call(self, func: ast.expr, args: list[ast.expr]) -> "Classes | None":
        name = _last_name(func)
        if name == "super":
            return frozenset({self.own_name})
        if isinstance(func, ast.Name) and name not in self.names:
            if name in self.uses.classes:
                return frozenset({name})
            if name in self.uses.functions and name not in self.outside:
                return self._returned(name)
            return self._all(args)  # of a library: it returns its own, or what it was given
        receivers = self.infer(func.value) if isinstance(func, ast.Attribute) else self.infer(func)
        if receivers is ANY:
            return ANY
        if isinstance(func, ast.Attribute):
            if any(self._has(receiver, func.attr) for receiver in receivers):
                return self._attribute(receivers, func.attr)
            if receivers == OTHERS and func.attr in self.uses.functions:  # a function of one of our modules
                return self._returned(func.attr)
            return receivers.union(*(self.infer(one) or OTHERS for one in args))
        return receivers

    def _returned(self, name: str) -> "Classes | None":
        """What the functions of this name return."""
        found: Classes | None = OTHERS
        for function in self.uses.functions[name]:
            found = _both(found, self.uses.annotation(function.returns))
        return found

    def _has(self, receiver: str, attr: str) -> bool:
        names = (receiver, *self.uses.ancestors(receiver))
        same = [one for name in names for one in self.uses.classes.get(name, ())]
        return any(attr in one.methods or attr in one.fields for one in same)


def _both(one: "Classes | None", two: "Classes | None") -> "Classes | None":
    return ANY if one is ANY or two is ANY else one | two


def _lambdas(call: ast.Call) -> list[ast.Lambda]:
    given = [*call.args, *(one.value for one in call.keywords)]
    return [one for one in given if isinstance(one, ast.Lambda)]


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=attr):
            return attr
        case ast.Subscript(value=value):
            return _last_name(value)
    return ""


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is inside it, without the bodies of functions and classes."""
    yield node
    if isinstance(node, Function):
        inside: list[ast.AST] = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    elif isinstance(node, ast.ClassDef):
        inside = [*node.decorator_list, *node.bases]
    elif isinstance(node, ast.Lambda):
        inside = []
    else:
        inside = list(ast.iter_child_nodes(node))
    for part in inside:
        yield from _same_scope(part)


def template_words(pages: Iterable[Path]) -> set[str]:
    """What templates read of the objects they are given."""
    return set(re.findall(r"\.(\w+)", " ".join(page.read_text("utf-8") for page in pages)))
