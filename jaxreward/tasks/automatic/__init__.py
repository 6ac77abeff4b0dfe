"""Vocabularies derived from tasks that bring none."""

from __future__ import annotations

from jaxreward.tasks.automatic.contrasts import contrast_vocabulary, labelled, with_more_contrasts
from jaxreward.tasks.automatic.vocabulary import automatic_vocabulary, vocabulary_of_data

__all__ = ["automatic_vocabulary", "contrast_vocabulary", "labelled", "vocabulary_of_data", "with_more_contrasts"]
