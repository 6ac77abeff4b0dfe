"""CPU cores as devices of JAX."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SHOW = """
import json, jax
from jaxreward.devices import cores, cores_of_a_device, use_cores
if {late}:
    jax.numpy.zeros(1)
use_cores()
print(json.dumps([cores(), jax.config.jax_num_cpu_devices, cores_of_a_device(), len(jax.devices())]))
"""


def shown(late: bool = False, **environment: str) -> list[int]:
    usual = {k: v for k, v in os.environ.items() if k != "JAX_NUM_CPU_DEVICES"}
    command = [sys.executable, "-c", SHOW.format(late=late)]
    done = subprocess.run(command, env={**usual, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_core_is_a_device():
    cores, asked, each, devices = shown()
    assert cores == len(os.sched_getaffinity(0))
    assert asked == devices == min(8, cores) and each == max(1, cores // devices)


@pytest.mark.parametrize(("how", "devices"), [({"JAX_NUM_CPU_DEVICES": "3"}, 3), ({"late": True}, 1)])
def test_an_explicit_number_of_devices_takes_precedence(how, devices):
    assert shown(**how)[3] == devices
