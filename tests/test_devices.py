"""Compile options are asked of the installed XLA, not assumed."""

from __future__ import annotations

import jax

from jaxreward.devices import FAST, SMALL, supported
from jaxreward.tasks import compiler_options, make_task
from jaxreward.training import compiled
from jaxreward.training.compiled import GPU, xla_options


def test_options_that_xla_does_not_know_are_left_out():
    known = {"xla_backend_optimization_level": 1}
    assert supported({"xla_no_such_option": True} | known, "cpu") == known
    assert supported({}, "no such platform") == {}


def test_a_function_compiles_with_whatever_is_asked_for():
    lowered = jax.jit(lambda x: x * 2.0).lower(1.0)
    for options in (FAST, SMALL, {"xla_no_such_option": 7}, None):
        assert lowered.compile(xla_options("cpu", options))(3.0) == 6.0


def test_a_task_asks_for_options_that_the_installed_xla_knows(monkeypatch):
    task = make_task("inverted-pendulum")
    monkeypatch.setattr(type(task), "compiler_options", lambda *_: {"xla_no_such_option": 1})
    assert compiler_options(task, "cpu") == {}


def test_a_gpu_records_loops_in_graphs_where_xla_can(monkeypatch):
    monkeypatch.setattr(compiled, "supported", lambda options, *_: dict(options))
    assert xla_options("gpu", {"xla_other": 1}) == GPU | {"xla_other": 1}
    (name,) = GPU
    assert xla_options("gpu", {name: ""}) == {name: ""}, "a task's own option is the one that counts"
    monkeypatch.setattr(compiled, "supported", lambda *_: {})
    assert xla_options("gpu") is None
