# ruff: noqa: E501  (program texts as data)
"""Programs that must pass, in the many ways that people and language models write them.

name -> (source, kinds of notices that must be given)
"""

from __future__ import annotations

from suite_parts import HEAD, OBSERVE, PAY, line, mod, obs, rew

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "plain": (HEAD + OBSERVE + PAY, ()),
    "observation_only": (HEAD + OBSERVE, ()),
    "reward_only": (HEAD + PAY, ()),
    "grace": (HEAD + "def reward(state):\n    return -jnp.sum((state.goal - state.pos) ** 2)\n", ("next_state_only",)),
    "helper_called_reward": (
        HEAD + "def reward(a, b):\n    return a * b\n" + OBSERVE
        + "def compute_reward(state, action, next_state):\n    return reward(state.pos[0], next_state.pos[0])\n", (),
    ),
    "from_imports": (
        "from jax import numpy as np, lax, nn\nfrom jax.numpy import where, linalg\nfrom jax.nn import relu\n"
        "def get_observation(state):\n    x = where(state.pos > 0, relu(state.pos), nn.tanh(state.vel))\n"
        "    return np.append(lax.select(x > 0, x, -x), linalg.norm(x))\n", (),
    ),
    "import_without_alias": (
        "import jax.numpy\ndef get_observation(state):\n    return jax.numpy.concatenate([state.pos, state.goal])\n", (),
    ),
    "no_import": ("def get_observation(state):\n    return state.pos * 2.0\n", ()),
    "future_annotations": (
        "from __future__ import annotations\nimport jax.numpy as jnp\n"
        "def get_observation(state) -> jnp.ndarray:\n    return state.pos\n", (),
    ),
    "annotations": (
        HEAD + "SCALE: float = 2.0\ndef f(x: jnp.ndarray, n: int = 2) -> jax.Array:\n    y: list[float] = []\n"
        "    return x * n * SCALE\ndef get_observation(state) -> 'jnp.ndarray':\n    return f(state.pos)\n" + PAY, (),
    ),
    "docstrings": ('"""A program."""\n' + HEAD + 'def get_observation(state):\n    """What is seen."""\n    return state.pos\n', ()),
    "constants_and_tables": (obs("return state.pos @ T * N", "N = 3\nT = jnp.array([[0.0, 1.0], [1.0, 0.0]])\n"), ()),
    "list_building": (
        obs("out = []\nfor i in range(2):\n    out.append(state.pos[i])\n    out.extend([state.vel[i], state.goal[i]])\n"
            "return jnp.stack(out)"), (),
    ),
    "starred": (obs("parts = [*state.pos, *state.vel]\nreturn jnp.array([*parts, state.goal[0]])"), ()),
    "comprehensions": (
        obs("a = [state.pos[i] * j for i in range(2) for j in (1, 2) if i != j]\nd = {k: v for k, v in enumerate(a)}\n"
            "return jnp.array(list(d.values()))"), (),
    ),
    "nested_closure": (
        obs("w = 2.0\ndef scaled(x):\n    def inner(y):\n        return y * w\n    return inner(x)\nreturn scaled(state.pos)"), (),
    ),
    "lambda_and_map": (obs("f = lambda x, k=2: x * k\nreturn jnp.stack(list(map(f, state.pos)))"), ()),
    "keyword_arguments": (obs("return jnp.clip(state.pos, min=-1.0, max=1.0)"), ()),
    "string_subscripts": (obs("return state.info['gyro']"), ()),
    "dictionary_methods": (obs("return jnp.concatenate([jnp.atleast_1d(v) for v in state.info.values()])"), ()),
    "nested_fields": (obs("return state.agent.position.astype(jnp.float32) / 4"), ()),
    "one_hot": (obs("return jax.nn.one_hot(state.t, 5)"), ()),
    "select": (obs("return jax.lax.select(state.pos > 0, state.pos, state.vel)"), ()),
    "reshape_and_ravel": (obs("return state.grid.reshape(-1).astype(jnp.float32) / 12.0"), ()),
    "mask_arithmetic": (
        obs("m = (state.grid[:, :, 0] == 3) & (state.grid[:, :, 1] == 2)\nyy, xx = jnp.meshgrid(jnp.arange(5), jnp.arange(5), indexing='ij')\n"
            "n = jnp.maximum(m.sum(), 1)\nreturn jnp.array([jnp.sum(yy * m) / n, jnp.sum(xx * m) / n])"), (),
    ),
    "window_by_index": (
        obs("r = jnp.clip(state.agent.position[0] + jnp.arange(-1, 2), 0, 4)\nc = jnp.clip(state.agent.position[1] + jnp.arange(-1, 2), 0, 4)\n"
            "return state.grid[r[:, None], c[None, :], 0].astype(jnp.float32).ravel()"), (),
    ),
    "window_by_dynamic_slice": (
        obs("g = jnp.pad(state.grid[:, :, 0], 2)\nw = jax.lax.dynamic_slice(g, (state.agent.position[0], state.agent.position[1]), (3, 3))\n"
            "return w.astype(jnp.float32).reshape(-1)"), (),
    ),
    "negative_index": (obs("return jnp.stack([state.pos[-1], state.grid[-1, -2, 0].astype(jnp.float32)])"), ()),
    "at_methods": (obs("x = jnp.zeros(4).at[1].set(state.pos[0]).at[2:].add(state.vel)\nreturn x.at[0].max(1.0).at[state.t].mul(2.0)"), ()),
    "argmax": (obs("i = jnp.argmax(jnp.abs(state.pos))\nreturn jnp.stack([state.pos[i], i.astype(jnp.float32)])"), ()),
    "sort_and_cumsum": (obs("return jnp.cumsum(jnp.sort(state.info['gyro']))"), ()),
    "cond": (obs("return jax.lax.cond(state.t > 1, lambda x: x, lambda x: -x, state.pos)"), ()),
    "switch": (obs("return jax.lax.switch(state.t, [lambda x: x, lambda x: -x, lambda x: 2 * x], state.pos)"), ()),
    "fori_loop": (obs("return jax.lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, state.pos)"), ()),
    "fori_loop_traced_bound": (obs("return jax.lax.fori_loop(0, jnp.clip(state.t, 0, 4), lambda i, c: c * 0.5, state.pos)"), ()),
    "while_loop": (obs("return jax.lax.while_loop(lambda c: jnp.sum(c) < 5, lambda c: c + 1.0, jnp.abs(state.pos))"), ()),
    "scan_with_outputs": (obs("c, ys = jax.lax.scan(lambda c, x: (c + x, c * x), 0.0, state.info['gyro'])\nreturn jnp.append(ys, c)"), ()),
    "reverse_scan": (obs("return jax.lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, state.pos, reverse=True)[1] + state.vel"), ()),
    "associative_scan": (obs("return jax.lax.associative_scan(jnp.add, state.info['gyro'])"), ()),
    "lax_map": (obs("return jax.lax.map(lambda x: x * 2, state.pos)"), ()),
    "vmap": (obs("return jax.vmap(lambda a, b: a * b)(state.pos, state.vel)"), ()),
    "grad": (obs("return jax.grad(lambda p: jnp.sum((p - state.goal) ** 2))(state.pos)"), ()),
    "jit_decorator": (obs("return f(state.pos)", "@jax.jit\ndef f(x):\n    return x * 2\n"), ()),
    "jit_of_state": (obs("return f(state)", "@jax.jit\ndef f(s):\n    return s.pos * 2 + s.info['gyro'][0]\n"), ()),
    "vectorize": (obs("return jnp.vectorize(lambda a, b: a + b)(state.pos, state.vel)"), ()),
    "apply_along_axis": (obs("return jnp.apply_along_axis(jnp.cumsum, 0, state.pos)"), ()),
    "piecewise": (obs("return jnp.piecewise(state.pos, [state.pos < 0, state.pos >= 0], [lambda x: -x, lambda x: x * 2])"), ()),
    "einsum": (obs("return jnp.einsum('i,j->ij', state.pos, state.vel).ravel()"), ()),
    "solve": (obs("return jnp.linalg.solve(jnp.eye(2) * 3.0, state.pos)"), ()),
    "norm_guarded": (obs("d = state.goal - state.pos\nreturn d / (jnp.linalg.norm(d) + 1e-6)"), ()),
    "interp": (obs("return jnp.interp(state.pos, jnp.arange(3.0), jnp.array([0.0, 1.0, 4.0]))"), ()),
    "activations": (obs("return jnp.concatenate([f(state.pos) for f in (jax.nn.relu, jax.nn.gelu, jax.nn.softplus, jax.nn.silu)])"), ()),
    "for_over_array": (obs("return jnp.stack([2.0 * x for x in state.pos])"), ()),
    "for_over_directions": (
        obs("best = 1e3\nfor d in range(4):\n    p = state.agent.position + D[d]\n    best = jnp.minimum(best, jnp.sum(jnp.abs(p - 2)))\n"
            "return jnp.stack([best / 10.0])", "D = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])\n"), (),
    ),
    "static_branch": (obs("if state.pos.shape[0] == 2 and len(state.info) > 0:\n    return state.pos\nreturn state.vel"), ()),
    "static_assert": (obs("assert state.pos.shape == (2,), 'two'\nreturn state.pos"), ()),
    "conditional_expression": (obs("return state.pos if state.pos.ndim == 1 else state.vel"), ()),
    "fstring_names": (rew("t = {f'axis_{i}': -jnp.abs(next_state.pos[i]) + state.pos[i] * 0 for i in range(2)}\nreturn sum(t.values()), t"), ()),
    "fstring_with_format": (rew("return -jnp.sum(next_state.pos) + state.pos[0], {f'w_{0.5:.2f}': state.pos[0], f'{3:02d}': -jnp.sum(next_state.pos)}"), ()),
    "variable_called_dir": (obs("dir = state.agent.direction\nreturn jax.nn.one_hot(dir, 4)"), ()),
    "variable_called_type_and_id": (obs("type, id, hash = state.pos[0], state.pos[1], state.vel[0]\nreturn jnp.stack([type, id, hash])"), ()),
    "argument_called_input": (obs("return f(state.pos)", "def f(input):\n    return input * 2\n"), ()),
    "break_and_continue": (obs("x = state.pos\nfor i in range(9):\n    if i == 1:\n        continue\n    if i > 3:\n        break\n    x = x + i\nreturn x"), ()),
    "augmented": (obs("x = state.pos\nx += 1\nx *= 2\nx -= state.vel\nreturn x"), ()),
    "unused_argument": (rew("return jnp.sum(next_state.pos) - jnp.sum(state.pos)"), ()),
    "reward_bool": (rew("return jnp.all(jnp.abs(next_state.pos - state.pos) < 0.5)"), ()),
    "reward_int": (rew("return (next_state.t - state.t)"), ()),
    "reward_sparse": (rew("return jnp.where(jnp.all(jnp.abs(next_state.pos - next_state.goal) < 1e-6) & (state.t > 99), 1.0, 0.0)"), ("constant_reward",)),
    "reward_zero_times_state": (rew("return 0.0 * jnp.sum(state.pos)"), ("constant_reward",)),
    "reward_components": (rew("a, b = jnp.sum(next_state.pos), jnp.sum(action) + state.pos[0]\nreturn a + b, {'a': a, 'b': b}"), ()),
    "reward_list_pair": (rew("a = jnp.sum(next_state.pos) - state.pos[0]\nreturn [a, {'a': a}]"), ()),
    "reward_terms_do_not_sum": (rew("a = jnp.sum(next_state.pos) + state.pos[0]\nreturn a, {'a': a, 'b': jnp.sum(action)}"), ("terms_do_not_sum",)),
    "reward_terms_that_cancel": (rew("a, c = 7e4 * jnp.sum(next_state.pos), 3e4 * jnp.sum(state.pos)\nb = state.pos[0] - a - c\nreturn a + c + b, {'a': a, 'b': b, 'c': c}"), ()),
    "reward_next_only": (rew("return -jnp.sum((next_state.goal - next_state.pos) ** 2)"), ("next_state_only",)),
    "reward_action_only": (rew("return -jnp.sum(action ** 2)"), ("action_only",)),
    "reward_32_terms": (rew("s = jnp.sum(action) + state.pos[0]\nt = {f't{i}': s / 32 for i in range(32)}\nreturn sum(t.values()), t"), ()),
    "reward_zero_dim_array": (rew("return jnp.array(1.0) * state.pos[0] - next_state.pos[0]"), ()),
    "observation_duplicates": (obs("return jnp.concatenate([state.pos, state.pos])"), ("duplicate_features",)),
    "observation_partly_constant": (obs("return jnp.append(state.pos, 1.0)"), ("constant_features",)),
    "observation_512": (obs("return jnp.concatenate([state.pos, jnp.tile(state.vel, 255)])"), ("duplicate_features",)),
    "observation_one": (obs("return state.pos[:1]"), ()),
    "unicode_text": (mod("# \u00e9tat, \u72b6\u614b\nNAME = 'caf\u00e9'"), ()),
    "windows_newlines": ((HEAD + OBSERVE + PAY).replace("\n", "\r\n"), ()),
    "tabs": (HEAD + "def get_observation(state):\n\treturn state.pos\n" + PAY, ()),
    "semicolons": (line("x = 1; y = 2"), ()),
    "dead_code": (line("x = jnp.sin(state.vel)\nif False:\n    y = 1"), ()),
    "pass_and_expression": (line("pass\nstate.pos\n'text'"), ()),
    "dictionary_state": (obs("d = {'p': state.pos}\nd['v'] = state.vel\nd.update(g=state.goal)\nreturn jnp.concatenate([d[k] for k in sorted(d)])"), ()),
    "text_of_numbers": (rew("d = {f'term_{i}': state.pos[i] * next_state.vel[i] for i in range(2)}\nd[str(2) + f'{0.5:.1f}'] = jnp.sum(action)\nreturn sum(d.values()), d"), ()),
    "set_of_numbers": (obs("return jnp.stack([state.pos[i] for i in {1, 0}])"), ()),
    "set_for_membership": (obs("return jnp.stack([state.pos[0] for k in ('a', 'b') if k in {'a', 'b'}])"), ()),
    "imported_transformations": (obs("return g(jnp.stack([state.pos, state.vel]))", "from jax import jit, vmap as v\n@jit\ndef f(x):\n    return jnp.sum(x) % 3\ng = v(f, in_axes=0)\n"), ()),
    "jit_with_static_arguments": (obs("return f(state.pos, 2)", "def g(x, n):\n    return x * n\nf = jax.jit(g, static_argnums=1)\n"), ()),
    "set_and_slice": (obs("s = set([1, 0])\nreturn jnp.stack([state.pos[i] for i in sorted(s)])[slice(0, 2)]"), ()),
    "integers": (obs("i = state.t // 2 + state.t % 3 - (state.t ^ 1) + (state.t << 1)\nreturn jnp.stack([i / 7, jnp.sign(i) * 1.0])"), ()),
    "finfo": (obs("return state.pos + jnp.finfo(jnp.float32).eps"), ()),
    "newaxis": (obs("return (state.pos[:, None] * state.vel[jnp.newaxis, :]).sum(axis=-1)"), ()),
    "ellipsis_index": (obs("return state.grid[..., 0].mean(axis=0).astype(jnp.float32)"), ()),
}  # fmt: skip
