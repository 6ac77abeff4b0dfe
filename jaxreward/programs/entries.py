"""The entry points of a program, and the exception that refuses it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

FILE = "<candidate>"
ENTRIES = {"get_observation": 1, "compute_reward": 3, "reward": 1}
DEBUG = "debug"
"""A function of the state that a program may define besides: its values are shown to who improves the program, where
somebody asks for them, and are no part of what is trained."""


class Refused(Exception):
    """A program refused for its source, or for breaking its contract when traced.

    Attributes:
        always: whether what the source says fails also where no rule forbids it.
    """

    def __init__(
        self, message: str, line: int | None = None, hint: str = "", stage: str = "guard", always: bool = False
    ) -> None:
        super().__init__(message)
        self.message, self.line, self.hint, self.stage, self.always = message, line, hint, stage, always
        self.half: str | None = None


@dataclass(frozen=True)
class Guarded:
    """Source that passed: its tree, its entry points, and the size of its reward."""

    tree: ast.Module
    observation: str | None
    reward: str | None
    reward_nodes: int
    debug: str | None = None


def entries(tree: ast.Module, debug: bool = False) -> Guarded:
    """The entry points of a program that passed the guard.

    Args:
        debug: whether `debug` is one of them, if it is defined; else it is a function like any other.

    Raises:
        Refused: there is none, or one of another signature.
    """
    functions: dict[str, ast.FunctionDef] = {}
    known = {*ENTRIES, DEBUG} if debug else {*ENTRIES}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if node.name in functions and node.name in known:
                raise Refused(f"{node.name} is defined twice", node.lineno, "keep one of them", "contract")
            functions[node.name] = node
    shown = DEBUG if debug and DEBUG in functions else None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
            continue
        if node.id in ("get_observation", "compute_reward", shown):
            raise Refused(f"{node.id} is assigned to", node.lineno, f"define it by 'def {node.id}'", "contract")
    observation = "get_observation" if "get_observation" in functions else None
    reward = "compute_reward" if "compute_reward" in functions else None
    if reward is None and "reward" in functions and _arity(functions["reward"]) == 1:
        reward = "reward"
    for name in (observation, reward, shown):
        if name is not None and _arity(functions[name]) != (taken := ENTRIES.get(name, 1)):
            wanted = {1: "(state)", 3: "(state, action, next_state)"}[taken]
            raise Refused(
                f"{name} must take {taken} positional argument(s) without defaults",
                functions[name].lineno, f"write def {name}{wanted}:", "contract",
            )  # fmt: skip
    if observation is None and reward is None:
        hint = "write def get_observation(state): and def compute_reward(state, action, next_state):"
        raise Refused("the program defines neither get_observation nor compute_reward", hint=hint, stage="contract")
    return Guarded(tree, observation, reward, _size(functions, reward), shown)


def _arity(function: ast.FunctionDef) -> int:
    a = function.args
    return -1 if a.vararg or a.kwarg or a.kwonlyargs or a.defaults else len(a.posonlyargs) + len(a.args)


def _size(functions: dict[str, ast.FunctionDef], entry: str | None) -> int:
    """Syntax nodes of a function and of the helpers that it reaches."""
    reached: set[str] = set()
    todo, total = [entry] if entry else [], 0
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for node in ast.walk(functions[name]):
            total += 1
            if isinstance(node, ast.Name) and node.id in functions:
                todo.append(node.id)
    return total
