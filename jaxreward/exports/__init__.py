"""Exports: a discovered program as a module that training code outside jaxreward imports."""

from __future__ import annotations

from jaxreward.exports.module import Export, export
from jaxreward.exports.targets import TARGETS, Target

__all__ = ["TARGETS", "Export", "Target", "export"]
