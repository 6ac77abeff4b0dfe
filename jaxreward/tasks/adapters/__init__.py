"""Tasks from functions and from environments of other libraries, which are imported when one is made."""

from __future__ import annotations

from jaxreward.tasks.adapters.brax import from_brax
from jaxreward.tasks.adapters.functions import from_functions
from jaxreward.tasks.adapters.gymnax import from_gymnax
from jaxreward.tasks.adapters.jumanji import from_jumanji
from jaxreward.tasks.adapters.playground import from_playground

__all__ = ["from_brax", "from_functions", "from_gymnax", "from_jumanji", "from_playground"]
