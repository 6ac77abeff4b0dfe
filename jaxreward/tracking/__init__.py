"""Runs in TensorBoard and Weights & Biases, fed from the event log."""

from jaxreward.tracking.tracker import SINKS, SinkName, Tracker, require

__all__ = ["SINKS", "SinkName", "Tracker", "require"]
