"""The verifier: a process that judges tapes and can be killed when XLA does not come back.

Run as `python -m jaxreward.programs.verify`. It never sees source; the CPU is its only device.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxreward.programs.judge import Judged, Samples, judge
from jaxreward.programs.limits import Limits
from jaxreward.programs.process import Lost, read_frame, write_frame
from jaxreward.programs.spec import Spec, dtype_of

_MAX_REQUEST = 64 << 20


def pack(array: Any) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    data = base64.b64encode(array.tobytes()).decode()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "data": data}


def unpack(data: dict[str, Any]) -> np.ndarray[Any, Any]:
    raw = base64.b64decode(data["data"])
    return np.frombuffer(raw, dtype_of(data["dtype"])).reshape(data["shape"])


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a request as JSON: `cost` and `notices`, or `failure`."""
    spec, limits = Spec.from_json(request["spec"]), Limits(**request["limits"])
    samples = None
    if request["samples"]:
        states, actions, nexts = request["samples"]
        samples = Samples([unpack(a) for a in states], unpack(actions), [unpack(a) for a in nexts])
    try:
        cost, notices = judge(
            request["observation"], request["reward"], spec, limits, samples, tuple(request["own"]), request["terms"]
        )
    except Judged as judged:
        return {"failure": judged.failure.model_dump(), "half": judged.half}
    except Exception as error:  # XLA may refuse what traces; the process lives on
        message = f"it cannot be evaluated: {type(error).__name__}: {str(error)[:300]}"
        return {"failure": {"stage": "numeric", "message": message}}
    return {"cost": vars(cost), "notices": [n.model_dump() for n in notices]}


def main() -> None:
    replies = os.dup(1)
    os.dup2(2, 1)
    with contextlib.suppress(OSError):  # if memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("500")
    jnp.zeros(())  # starts the backend now, so that it is not on a program's clock
    write_frame(replies, b"{}")
    while True:
        try:
            request = read_frame(0, _MAX_REQUEST)
        except Lost:
            return
        write_frame(replies, json.dumps(answer(json.loads(request))).encode())


if __name__ == "__main__":
    main()
