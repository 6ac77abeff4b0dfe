"""Launches, bytes and arithmetic of small optimised HLO modules whose figures are known."""

from __future__ import annotations

from textwrap import dedent

import pytest

from benchmarks.described import DEVICES
from benchmarks.launches import Module
from benchmarks.roofline import estimate

ADD = """
    %fused_add (p: s32[]) -> s32[] {
      %p = s32[] parameter(0)
      %one = s32[] constant(1)
      ROOT %add = s32[] add(%p, %one)
    }
"""

LOOP = """
    %body (arg: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
      %arg = (s32[], f32[8,4]{1,0}) parameter(0)
      %i = s32[] get-tuple-element(%arg), index=0
      %x = f32[8,4]{1,0} get-tuple-element(%arg), index=1
      %next = s32[] fusion(%i), kind=kLoop, calls=%fused_add
      %moved = f32[8,4]{0,1} copy(%x)
      ROOT %both = (s32[], f32[8,4]{1,0}) tuple(%next, %moved)
    }

    %condition (arg: (s32[], f32[8,4])) -> pred[] {
      %arg.1 = (s32[], f32[8,4]{1,0}) parameter(0)
      %i.1 = s32[] get-tuple-element(%arg.1), index=0
      %limit = s32[] constant(LIMIT)
      ROOT %less = pred[] compare(%i.1, %limit), direction=LT
    }

    ENTRY %main (x: f32[8,4]) -> f32[8,4] {
      %x.1 = f32[8,4]{1,0} parameter(0)
      %first = s32[] constant(FIRST)
      %start = (s32[], f32[8,4]{1,0}) tuple(%first, %x.1)
      %loop = (s32[], f32[8,4]{1,0}) while(%start), condition=%condition, body=%body HINT
      ROOT %out = f32[8,4]{1,0} get-tuple-element(%loop), index=1
    }
"""


def module(text: str, **options: bool) -> Module:
    return Module(dedent(text), **options)


def loop(first: int = 0, limit: str = "5", hint: str = "") -> str:
    return ADD + LOOP.replace("LIMIT", limit).replace("FIRST", str(first)).replace("HINT", hint)


def test_a_kernel_is_launched_once_and_what_only_names_a_value_never():
    cost = module("""
        %fused (a: f32[8,4], b: f32[8,4]) -> f32[8,4] {
          %a = f32[8,4]{1,0} parameter(0)
          %b = f32[8,4]{1,0} parameter(1)
          ROOT %sum = f32[8,4]{1,0} add(%a, %b)
        }

        ENTRY %main (x: f32[8,4]) -> f32[4,8] {
          %x = f32[8,4]{1,0} parameter(0)
          %twice = f32[8,4]{1,0} fusion(%x, %x), kind=kLoop, calls=%fused
          ROOT %seen = f32[4,8]{1,0} bitcast(%twice)
        }
    """).cost()
    assert cost.kinds == {"fusion kLoop": 1}
    assert (cost.bytes, cost.flops) == (3 * 8 * 4 * 4, 8 * 4)


@pytest.mark.parametrize("first", [0, 2])
def test_a_loop_between_constants_runs_its_body_once_a_turn(first):
    cost = module(loop(first)).cost()
    assert cost.kinds == {"fusion kLoop": 5 - first, "copy": 5 - first} and not cost.unknown


def test_turns_that_xla_wrote_down_are_believed():
    hint = ', backend_config={"known_trip_count":{"n":"7"}}'
    assert module(loop(limit="99", hint=hint)).cost().launches == 14


def test_a_loop_of_unknown_length_is_reported_apart():
    text = loop().replace("direction=LT", "direction=NE")
    cost = module(text).cost()
    assert cost.launches == 0 and cost.unknown == {3: 1} and cost.unknown_turn == 3  # two of the body, one test
    assert cost.bytes > 0, "one turn is counted"


def test_an_unknown_loop_in_a_known_one_is_entered_every_turn():
    inner = loop().replace("direction=LT", "direction=NE").replace("ENTRY %main", "%inner")
    outer = LOOP.replace("LIMIT", "4").replace("FIRST", "0").replace("HINT", "")
    for name in ("body", "condition"):
        outer = outer.replace(f"%{name}", f"%outer_{name}")
    outer = outer.replace("%moved = f32[8,4]{0,1} copy(%x)", "%moved = f32[8,4]{1,0} call(%x), to_apply=%inner")
    cost = module(inner + outer).cost()
    assert cost.kinds == {"fusion kLoop": 4} and cost.unknown == {3: 4} and cost.unknown_turn == 12


def test_numbers_alone_are_no_launches_where_the_device_has_a_unit_for_them():
    assert module(loop(), scalars=False).cost().kinds == {"copy": 5}


def test_the_dearest_branch_of_a_conditional_counts():
    cost = module("""
        %cheap (a: f32[8]) -> f32[8] {
          %a = f32[8]{0} parameter(0)
          ROOT %same = f32[8]{0} copy(%a)
        }

        %dear (b: f32[8]) -> f32[8] {
          %b = f32[8]{0} parameter(0)
          %c = f32[8]{0} copy(%b)
          ROOT %d = f32[8]{0} copy(%c)
        }

        ENTRY %main (p: pred[], x: f32[8]) -> f32[8] {
          %p = pred[] parameter(0)
          %x = f32[8]{0} parameter(1)
          ROOT %out = f32[8]{0} conditional(%p, %x, %x), true_computation=%dear, false_computation=%cheap
        }
    """).cost()
    assert cost.kinds == {"copy": 2, "conditional": 1}


def test_slices_count_and_not_what_they_are_taken_of_or_put_into():
    """As a scan reads its input and writes its output."""
    cost = module("""
        %fused (all: f32[100,8], out: f32[100,8], at: s32[]) -> f32[100,8] {
          %all = f32[100,8]{1,0} parameter(0)
          %out = f32[100,8]{1,0} parameter(1)
          %at = s32[] parameter(2)
          %zero = s32[] constant(0)
          %row = f32[1,8]{1,0} dynamic-slice(%all, %at, %zero), dynamic_slice_sizes={1,8}
          ROOT %put = f32[100,8]{1,0} dynamic-update-slice(%out, %row, %at, %zero)
        }

        ENTRY %main (x: f32[100,8], y: f32[100,8], i: s32[]) -> f32[100,8] {
          %x = f32[100,8]{1,0} parameter(0)
          %y = f32[100,8]{1,0} parameter(1)
          %i = s32[] parameter(2)
          ROOT %z = f32[100,8]{1,0} fusion(%x, %y, %i), kind=kLoop, calls=%fused
        }
    """).cost()
    assert (cost.bytes, cost.flops) == (32 + 32 + 4, 0)


@pytest.mark.parametrize(
    "product",
    [
        "dot(%x, %y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        "convolution(%x, %y), window={size=3}, dim_labels=0bf_0io->0bf",
        'custom-call(%x, %y), custom_call_target="__cublas$gemm", '
        'backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"]}}}',
    ],
)
def test_a_product_takes_two_operations_for_each_pair(product):
    cost = module(f"""
        ENTRY %main (x: f32[3,8,5], y: f32[3,5,4]) -> f32[3,8,4] {{
          %x = f32[3,8,5]{{2,1,0}} parameter(0)
          %y = f32[3,5,4]{{2,1,0}} parameter(1)
          ROOT %z = f32[3,8,4]{{2,1,0}} {product}
        }}
    """).cost()
    assert cost.flops == 2 * 3 * 8 * 4 * 5 and cost.launches == 1


def test_a_library_is_not_charged_for_the_memory_that_it_works_in():
    cost = module("""
        ENTRY %main (x: f32[8,5], y: f32[5,4]) -> f32[8,4] {
          %x = f32[8,5]{1,0} parameter(0)
          %y = f32[5,4]{1,0} parameter(1)
          %both = (f32[8,4]{1,0}, s8[33554432]{0}) custom-call(%x, %y), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
          ROOT %z = f32[8,4]{1,0} get-tuple-element(%both), index=0
        }
    """).cost()  # noqa: E501
    assert (cost.bytes, cost.flops) == (4 * (40 + 20 + 32), 2 * 8 * 5 * 4)


def test_memory_of_the_core_is_not_that_of_the_device():
    cost = module("""
        ENTRY %main (x: f32[8,128]) -> f32[8,128] {
          %x = f32[8,128]{1,0:T(8,128)} parameter(0)
          %near = (f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%x)
          %done = f32[8,128]{1,0:T(8,128)S(1)} copy-done(%near)
          ROOT %twice = f32[8,128]{1,0:T(8,128)} add(%done, %done)
        }
    """).cost()
    assert cost.kinds == {"copy-start": 1, "add": 1}
    assert cost.bytes == 2 * 8 * 128 * 4  # the source, and the sum


def test_the_longest_bound_decides():
    function = {"launches": 1000, "unknown_turn": 0, "bytes": 0.0, "flops": 0.0}
    row = {"length": 4, "repeat": 1, "steps": 3000, "functions": {"collect": function, "learn": function}}
    found = estimate(row, DEVICES["h200"], launch_us=1.5)
    assert found["bound_by"] == "launches" and found["launches_per_step"] == 200
    assert found["steps_per_s"] == pytest.approx(1e6) and found["update_s"] == pytest.approx(3e-3)
    heavy = {**row, "functions": {"collect": {**function, "bytes": 4.8e12}, "learn": function}}
    found = estimate(heavy, DEVICES["h200"], launch_us=1.5)
    assert found["bound_by"] == "memory" and found["update_s"] == pytest.approx(1.0 + 1.5e-3)
