"""The advantage kernel against a plain loop and against what it must equal at lambda 0 and 1."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.kernels.gae import gae

GAMMA = 0.97


def trajectory(seed: int, length: int = 17) -> tuple[np.ndarray, ...]:
    """Random rewards, discounts with some terminations, and values at both ends of each step."""
    rng = np.random.default_rng(seed)
    discount = np.where(rng.random(length) < 0.2, 0.0, GAMMA)
    r, v_tm1, v_t = rng.normal(size=(3, length))
    return tuple(x.astype(np.float32) for x in (r, discount, v_tm1, v_t))


def plain(r, discount, v_tm1, v_t, lambda_) -> np.ndarray:
    """The recursion, in float64 and one step at a time."""
    r, discount, v_tm1, v_t, lambda_ = np.broadcast_arrays(*map(np.float64, (r, discount, v_tm1, v_t, lambda_)))
    out, advantage = np.zeros(len(r)), 0.0
    for t in reversed(range(len(r))):
        advantage = r[t] + discount[t] * v_t[t] - v_tm1[t] + discount[t] * lambda_[t] * advantage
        out[t] = advantage
    return out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lambda_", [0.0, 0.3, 0.95, 1.0])
def test_the_scan_equals_the_plain_loop(seed: int, lambda_: float):
    steps = trajectory(seed)
    np.testing.assert_allclose(
        gae(*map(jnp.asarray, steps), lambda_=lambda_), plain(*steps, lambda_=lambda_), rtol=1e-5, atol=1e-5
    )


def test_lambda_0_is_the_temporal_difference():
    r, discount, v_tm1, v_t = trajectory(0)
    expected = r + discount * v_t - v_tm1
    np.testing.assert_allclose(gae(*map(jnp.asarray, (r, discount, v_tm1, v_t)), lambda_=0.0), expected, rtol=1e-6)


def test_a_masked_step_has_no_temporal_difference():
    r, discount, v_tm1, v_t = map(jnp.asarray, trajectory(3))
    mask = jnp.arange(len(r)) != 4
    zeroed = r.at[4].set(v_tm1[4] - discount[4] * v_t[4])
    np.testing.assert_allclose(
        gae(r, discount, v_tm1, v_t, 0.9, mask), gae(zeroed, discount, v_tm1, v_t, 0.9), rtol=1e-5, atol=1e-5
    )
    assert float(gae(r, 0.0 * discount, v_tm1, v_t, 0.9, mask)[4]) == 0.0


def test_lambda_1_is_the_discounted_return_minus_the_value():
    """Within one episode, with the value of each state reached used for the next step."""
    length = 9
    r, _, values, _ = trajectory(1, length + 1)
    discount = np.full(length, GAMMA, np.float32)
    bootstrapped = np.append(r[:-1], values[-1])
    returns = [sum(GAMMA**k * x for k, x in enumerate(bootstrapped[t:])) for t in range(length)]
    advantages = gae(*map(jnp.asarray, (r[:-1], discount, values[:-1], values[1:])), lambda_=1.0)
    np.testing.assert_allclose(advantages, np.array(returns) - values[:-1], rtol=1e-5, atol=1e-5)


def test_a_truncated_episode_bootstraps_and_ignores_the_next():
    r, _, v_tm1, v_t = trajectory(2)
    discount = np.full_like(r, GAMMA)
    lambda_ = np.full_like(r, 0.9)
    lambda_[5] = 0.0  # a time limit after step 5
    whole = gae(*map(jnp.asarray, (r, discount, v_tm1, v_t)), lambda_=jnp.asarray(lambda_))
    head = gae(*(jnp.asarray(x[:6]) for x in (r, discount, v_tm1, v_t)), lambda_=0.9)
    np.testing.assert_allclose(whole[:6], head, rtol=1e-6)
    np.testing.assert_allclose(whole, plain(r, discount, v_tm1, v_t, lambda_), rtol=1e-5, atol=1e-5)


def test_batches_by_vmap_and_keeps_the_dtype():
    batch = [np.stack(x) for x in zip(trajectory(3), trajectory(4), strict=True)]
    batched = jax.jit(jax.vmap(gae, in_axes=(0, 0, 0, 0, None)))(*map(jnp.asarray, batch), 0.95)
    assert batched.dtype == jnp.float32
    for row, *steps in zip(batched, *batch, strict=True):
        np.testing.assert_allclose(row, plain(*steps, lambda_=0.95), rtol=1e-5, atol=1e-5)


def test_shapes_that_do_not_agree_are_refused_by_name():
    r, discount, v_tm1, v_t = map(jnp.asarray, trajectory(0))
    with pytest.raises(ValueError, match="v_tm1"):
        gae(r, discount, v_tm1[:-1], v_t, 0.95)
    with pytest.raises(ValueError, match="vmap"):
        gae(r[None], discount[None], v_tm1[None], v_t[None], 0.95)
