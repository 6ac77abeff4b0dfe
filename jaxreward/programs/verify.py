"""The verifier: a process that validates tapes and can be killed when XLA hangs.

Run as `python -m jaxreward.programs.verify`. It never sees source; the CPU is its only device.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxreward.programs.limits import Limits
from jaxreward.programs.process import Lost, leave_with_parent, read_frame, write_frame
from jaxreward.programs.samples import Samples
from jaxreward.programs.spec import Spec, dtype_of
from jaxreward.programs.validate import Invalid, is_skeleton, validate

_MAX_REQUEST = 64 << 20


def pack(array: Any) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    data = base64.b64encode(array.tobytes()).decode()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "data": data}


def unpack(data: dict[str, Any]) -> np.ndarray[Any, Any]:
    raw = base64.b64decode(data["data"])
    return np.frombuffer(raw, dtype_of(data["dtype"])).reshape(data["shape"])


_known: OrderedDict[str, Samples] = OrderedDict()
"""Inputs by key: they are sent once, not with every program."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a request as JSON: `cost`, `notices` and `lifts`, or `failure`, or that its inputs are `unknown`.

    A request with `samples` only stores inputs.
    """
    spec, key = Spec.from_json(request["spec"]), request["inputs"]
    if "samples" in request:
        return _store(key, request["samples"])
    if key is not None and key not in _known:
        return {"unknown": key}
    given, limits = None if key is None else _known[key], Limits(**request["limits"])
    own, begin = tuple(request["own"]), time.monotonic()
    try:
        cost, notices, paid = validate(
            request["observation"], request["reward"], spec, limits, given, own, request["terms"], request["debug"]
        )
    except Invalid as invalid:
        return {"failure": invalid.failure.model_dump(), "half": invalid.half}
    except Exception as error:  # XLA may refuse what traces; the process lives on
        message = f"it cannot be evaluated: {type(error).__name__}: {str(error)[:300]}"
        return {"failure": {"stage": "numeric", "message": message}}
    lifted = request["skeleton"]
    lifts = False
    if lifted is not None and time.monotonic() - begin < limits.verify_s / 3:  # a skeleton is optional
        lifts = is_skeleton(lifted[0], lifted[1], request["reward"], spec, limits, given, paid)
    return {"cost": vars(cost), "notices": [n.model_dump() for n in notices], "lifts": lifts}


def _store(key: str, samples: Any) -> dict[str, Any]:
    """Store inputs as `key`; a `fault` if they cannot be unpacked, which is no program's failure."""
    try:
        states, actions, nexts = samples
        _known[key] = Samples([unpack(a) for a in states], unpack(actions), [unpack(a) for a in nexts])
    except Exception as error:
        return {"fault": f"{type(error).__name__}: {str(error)[:300]}"}
    while len(_known) > 8:
        _known.popitem(last=False)
    return {}


def main() -> None:
    replies = os.dup(1)
    os.dup2(2, 1)
    with contextlib.suppress(OSError):  # if memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("500")
    leave_with_parent()
    jnp.zeros(())  # starts the backend before a program's time is measured
    write_frame(replies, b"{}")
    while True:
        try:
            request = read_frame(0, _MAX_REQUEST)
        except Lost:
            return
        write_frame(replies, json.dumps(answer(json.loads(request))).encode())


if __name__ == "__main__":
    main()
