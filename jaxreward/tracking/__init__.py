"""Runs in TensorBoard and Weights & Biases: an event of the log goes in, what they show comes out."""

from jaxreward.tracking.tracker import SINKS, SinkName, Tracker, require

__all__ = ["SINKS", "SinkName", "Tracker", "require"]
