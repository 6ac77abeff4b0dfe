"""What tells an object from another one in every process: its code, and the values that it holds."""

from jaxreward.identity.identity import Identity
from jaxreward.identity.parts import MOST, difference

__all__ = ["MOST", "Identity", "difference"]
