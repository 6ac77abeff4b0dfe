"""Vocabularies derived from tasks that bring none."""

from __future__ import annotations

from jaxreward.tasks.automatic.vocabulary import automatic_vocabulary

__all__ = ["automatic_vocabulary"]
