"""Robots in MuJoCo XLA, and their tasks."""
