"""Executing a program on abstract arrays and taping what it computes; runs in a locked-down child."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxreward.programs.constants import HOLDER, FloatLiteral, lift, literals
from jaxreward.programs.determinism import CHECKS, add_checks
from jaxreward.programs.diagnose import diagnose
from jaxreward.programs.encode import encode
from jaxreward.programs.encode import trace as tape_of
from jaxreward.programs.entries import FILE, Guarded, Refused
from jaxreward.programs.guard import guard
from jaxreward.programs.limits import Limits
from jaxreward.programs.module_state import require_unchanged
from jaxreward.programs.namespace import build_state, namespace
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import Tape, reads
from jaxreward.programs.unused import refuse_unused

_REAL_KINDS = "biuf"
_ATTEMPTS = 24
"""Traces that may be spent on finding out which literals can be constants."""


def serve(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Send the guard's verdict and the constants of the reward, then the tapes or a failure, then its skeleton if it
    has one."""
    source, spec, limits = request["source"], Spec.from_json(request["spec"]), Limits(**request["limits"])
    try:
        checked = guard(source, spec.fields(), limits, debug=request.get("debug", False))
        constants = literals(checked.tree, checked.reward, checked.observation) if checked.reward else ()
        code = compile(add_checks(checked.tree), FILE, "exec", dont_inherit=True)
    except BaseException as error:
        send({"failure": diagnose(error, source, spec)})
        return
    names = {"observation": checked.observation, "reward": checked.reward, "debug": checked.debug}
    lines = {half: return_line(checked.tree, name) for half, name in names.items() if name}
    places = [[c.line, c.start, c.end, c.value] for c in constants]
    send({**names, "reward_nodes": checked.reward_nodes, "lines": lines, "constants": places})
    try:
        answer = _tapes(code, checked, spec, limits)
    except BaseException as error:
        failure = diagnose(error, source, spec)
        if failure["line"] is None and isinstance(error, Refused):
            failure["line"] = lines.get(str(error.half))
        answer = {"failure": failure}
    send(answer)
    if constants and "failure" not in answer:
        with contextlib.suppress(BaseException):  # whatever happens here, the program has passed
            send(_skeleton(checked, constants, answer["terms"], spec, limits))


def _tapes(code: Any, checked: Guarded, spec: Spec, limits: Limits) -> dict[str, Any]:
    """The module is executed inside each trace, so that its tables are part of the function."""
    state_labels, reward_labels = spec.labels()
    state_structs, reward_structs = spec.structs()
    answer: dict[str, Any] = {}
    traces: list[tuple[Any, Tape, Sequence[Any]]] = []
    if checked.observation:

        def observe(*arrays: Any) -> list[Any]:
            state = build_state(spec.tree, list(arrays))
            names = _execute(code)
            with require_unchanged(names, state):
                seen = names["get_observation"](state)
            return [observation_of(seen, limits)]

        closed = jax.make_jaxpr(observe)(*state_structs)
        answer["observation"] = encode(closed, state_labels, limits)
        traces.append((closed, answer["observation"], state_structs))
    if checked.reward:
        terms: list[str] = []
        entry = checked.reward

        def reward(*arrays: Any) -> list[Any]:
            values, terms[:] = _paid(_execute(code), entry, spec, limits, arrays)
            return values

        closed = jax.make_jaxpr(reward)(*reward_structs)
        answer["reward"] = encode(closed, reward_labels, limits)
        answer["terms"] = terms
        traces.append((closed, answer["reward"], reward_structs))
    if checked.debug:
        named: list[str] = []

        def debug(*arrays: Any) -> list[Any]:
            state = build_state(spec.tree, list(arrays))
            names = _execute(code)
            with require_unchanged(names, state):
                shown = names["debug"](state)
            values, named[:] = _debugged(shown, limits)
            return values

        closed = jax.make_jaxpr(debug)(*state_structs)
        answer["debug"] = encode(closed, state_labels, limits)
        answer["debug_names"] = named
        traces.append((closed, answer["debug"], state_structs))
    refuse_unused(traces, limits)
    return answer


def _execute(code: Any, **more: Any) -> dict[str, Any]:
    names = namespace() | CHECKS | more
    exec(code, names)
    return names


def _paid(
    names: dict[str, Any], entry: str, spec: Spec, limits: Limits, arrays: Sequence[Any]
) -> tuple[list[Any], list[str]]:
    """Reward and terms of a transition, and the names of the terms, by the functions of an executed module."""
    n = len(spec.leaves)
    state, action = build_state(spec.tree, list(arrays[:n])), arrays[n]
    next_state = build_state(spec.tree, list(arrays[n + 1 :]))
    with require_unchanged(names, state, next_state):
        # GRACE's form is `reward(state)`, of the state that an action led to.
        value = names[entry](next_state) if entry == "reward" else names[entry](state, action, next_state)
    return reward_of(value, entry, limits)


def _skeleton(
    checked: Guarded, constants: Sequence[FloatLiteral], terms: Any, spec: Spec, limits: Limits
) -> dict[str, Any]:
    """The reward's tape with those of its `constants` as further inputs that can be: their indices are in `which`.

    Some cannot, since Python itself needs their values: a size, a condition. They are found by halving.
    """
    labels, structs = spec.labels()[1], spec.structs()[1]
    entry, inputs = str(checked.reward), len(structs)
    scalar = jax.ShapeDtypeStruct((), jnp.float32, weak_type=True)  # as the literal of Python that it stands for
    attempts = range(_ATTEMPTS).__iter__()

    def taped(which: list[int]) -> Any:
        """None if it cannot be traced so."""
        if next(attempts, None) is None:
            return None
        code = compile(lift(checked.tree, [constants[i] for i in which]), FILE, "exec", dont_inherit=True)

        def reward(*arrays: Any) -> list[Any]:
            names = _execute(code, **{HOLDER: arrays[inputs:]})
            values, found = _paid(names, entry, spec, limits, arrays[:inputs])
            if found != list(terms):
                raise Refused("its terms depend on a constant")
            return values

        named = [*labels, *(f"constant {i}" for i in range(len(which)))]
        try:
            return tape_of(reward, [*structs, *[scalar] * len(which)], named, limits)
        except Exception:
            return None

    def added(good: list[int], more: list[int], tape: Any) -> tuple[list[int], Any]:
        """`good` with those of `more` that can be constants too, and the tape of all these."""
        both = sorted([*good, *more])
        found = taped(both)
        if found is not None:
            return both, found
        if len(more) > 1:
            half = len(more) // 2
            good, tape = added(good, more[:half], tape)
            good, tape = added(good, more[half:], tape)
        return good, tape

    which, tape = added([], list(range(len(constants))), None)
    used = set[int]().union(*reads(tape)) if tape else set()
    if len(live := [c for i, c in enumerate(which, inputs) if i in used]) < len(which):
        which, tape = live, taped(live)
    return {"skeleton": tape, "which": which}


def return_line(tree: ast.Module, name: str) -> int:
    """The line of a function's last return statement, or else of its definition."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            returns = [n.lineno for n in ast.walk(node) if isinstance(n, ast.Return)]
            return max(returns, default=node.lineno)
    return 1


def observation_of(value: Any, limits: Limits) -> Any:
    """What `get_observation` returns, float32 (d,); `Refused` if it is something else."""
    try:
        return _vector(value, limits)
    except Refused as refused:
        refused.half = "observation"
        raise


def reward_of(value: Any, name: str, limits: Limits) -> tuple[list[Any], list[str]]:
    """What the reward called `name` returns as float32 scalars, reward and terms, and the names of these; `Refused` if
    it is something else."""
    try:
        return _scalars(value, name, limits)
    except Refused as refused:
        refused.half = "reward"
        raise


def _vector(value: Any, limits: Limits) -> Any:
    name = "get_observation"
    if not isinstance(value, jax.Array):
        what = "None" if value is None else f"a {type(value).__name__}"
        hint = "end with a return statement" if value is None else "return jnp.stack([...]).astype(jnp.float32)"
        raise Refused(f"{name} must return a float32 vector, not {what}", hint=hint, stage="contract")
    if value.ndim != 1:
        message = f"{name} must return a vector, not an array of shape {value.shape}"
        raise Refused(message, hint="use jnp.concatenate, or .reshape(-1)", stage="contract")
    if not 1 <= value.shape[0] <= limits.features:
        message = f"{name} must return 1 to {limits.features} features, not {value.shape[0]}"
        raise Refused(message, hint="keep the features that matter", stage="contract")
    if value.dtype != jnp.float32:
        message = f"{name} must return float32, not {value.dtype}"
        raise Refused(message, hint="add .astype(jnp.float32)", stage="contract")
    return value


def _scalars(value: Any, name: str, limits: Limits) -> tuple[list[Any], list[str]]:
    """Reward and terms as float32 scalars, and the names of the terms."""
    form = "return a scalar, or (scalar, {name: scalar})"
    terms: dict[Any, Any] = {}
    if isinstance(value, tuple | list):
        if len(value) != 2 or not isinstance(value[1], dict):
            raise Refused(f"{name} returns a {type(value).__name__} of {len(value)}", hint=form, stage="contract")
        value, terms = value
    if len(terms) > limits.terms:
        message = f"{name} returns {len(terms)} terms; the limit is {limits.terms}"
        raise Refused(message, hint="group the small ones", stage="contract")
    _require_names(terms, "a term")
    total = _scalar(value, f"the value of {name}", form)
    values = [_scalar(v, f"the term '{k}'", "every term is a scalar") for k, v in terms.items()]
    return ([total, *values], list(terms)) if terms else ([total, total], ["reward"])


def _require_names(keys: Iterable[Any], what: str) -> None:
    for key in keys:
        if not (isinstance(key, str) and 0 < len(key) <= 64 and key.isprintable()):
            raise Refused(f"{key!r:.80} is not the name of {what}", hint="use short strings", stage="contract")


def _debugged(value: Any, limits: Limits) -> tuple[list[Any], list[str]]:
    """What `debug` returns, arrays of real numbers or booleans of any shape, and their names; `Refused` if it is
    something else."""
    try:
        return _arrays(value, limits)
    except Refused as refused:
        refused.half = "debug"
        raise


def _arrays(value: Any, limits: Limits) -> tuple[list[Any], list[str]]:
    form = "return {'name': number or array, ...}"
    if not isinstance(value, dict) or not value:
        kinds = ((dict, "an empty one"), (jax.Array, "an array"), (type(None), "None"))
        what = next((words for kind, words in kinds if isinstance(value, kind)), f"a {type(value).__name__}")
        hint = "end with a return statement: " + form if value is None else form
        raise Refused(f"debug must return a dictionary of named arrays, not {what}", hint=hint, stage="contract")
    if len(value) > limits.terms:
        message = f"debug returns {len(value)} arrays; the limit is {limits.terms}"
        raise Refused(message, hint="keep those that matter, or stack numbers of a kind", stage="contract")
    _require_names(value, "an array")
    arrays = [_real(v, f"'{k}' of debug", form) for k, v in value.items()]
    if (size := sum(array.size for array in arrays)) > limits.debug_numbers:
        message = f"debug returns {size:,} numbers; the limit is {limits.debug_numbers:,}"
        raise Refused(message, hint="return sums, positions or parts of large arrays", stage="contract")
    return [a.astype(jnp.float32) if jnp.issubdtype(a.dtype, jnp.floating) else a for a in arrays], list(value)


def _scalar(value: Any, what: str, hint: str) -> Any:
    array = _real(value, what, hint)
    if array.shape != ():
        message = f"{what} has shape {array.shape}"
        raise Refused(message, hint=f"{hint}; use jnp.sum, or index the array", stage="contract")
    return array.astype(jnp.float32)


def _real(value: Any, what: str, hint: str) -> Any:
    """A number or an array of real numbers or booleans as an array."""
    if value is None:
        raise Refused(f"{what} is None", hint="end with a return statement", stage="contract")
    if not isinstance(value, jax.Array | bool | int | float) and not hasattr(value, "dtype"):
        raise Refused(f"{what} is a {type(value).__name__}", hint=hint, stage="contract")
    array = jnp.asarray(value)
    if array.dtype.kind not in _REAL_KINDS and array.dtype != jnp.bfloat16:
        raise Refused(f"{what} has dtype {array.dtype}", hint="return a real number", stage="contract")
    return array


def warm(jax: Any, jnp: Any, np: Any) -> None:
    """Trace a little of everything, so that children inherit what JAX builds lazily."""

    def everything(x: Any) -> list[Any]:
        i, grid = jnp.argmax(x), jnp.zeros((3, 3), jnp.int32)
        return [
            jnp.linalg.norm(x), jnp.clip(x, 0, 1), x[i], grid[i, i], jnp.where(x > 0, x, 0.0), jax.nn.one_hot(i, 4),
            jnp.meshgrid(jnp.arange(3), jnp.arange(3), indexing="ij")[0], jnp.concatenate([x, x]), jnp.stack([x, x]),
            x.at[0].set(1.0), jnp.sort(x), jnp.dot(x, x), jax.nn.relu(x), jax.nn.gelu(x), jax.nn.softmax(x),
            jax.lax.cond(x[0] > 0, lambda: 1.0, lambda: 2.0), jax.lax.scan(lambda c, _: (c, c), x, None, length=2)[0],
            jax.lax.fori_loop(0, 3, lambda k, c: c + 1, x), jnp.linalg.det(grid.astype(jnp.float32)), jnp.median(x),
            jnp.interp(x, x, x), jnp.mean(x), jnp.std(x), jax.lax.select(x > 0, x, x), jnp.arctan2(x, x), jnp.tanh(x),
            jnp.exp(x), jnp.linspace(0.0, 1.0, 3), jnp.roll(x, 1), jnp.pad(x, 1), jnp.take(x, i), x % 2, jnp.any(x > 0),
            jax.lax.dynamic_slice(x, (i,), (2,)), jnp.nonzero(x, size=2)[0], jnp.linalg.inv(jnp.eye(2)), x[1:3],
            jnp.einsum("i,j->ij", x, x), jax.vmap(lambda v: v * 2)(x), jnp.round(x), jnp.cumsum(x), jnp.prod(x),
        ]  # fmt: skip

    tape_of(everything, [jax.ShapeDtypeStruct((6,), np.float32)], ["x"], Limits())
