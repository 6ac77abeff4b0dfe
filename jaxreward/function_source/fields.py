"""Names of fields that no program reads."""

from __future__ import annotations

_TEXT = """
compile format format_map join encode decode translate mro tofile dump dumps tobytes replace partition rpartition
gi_frame gi_code gi_yieldfrom cr_frame cr_code ag_frame ag_code f_back f_globals f_locals f_builtins f_code tb_frame
tb_next func_globals func_code co_code ctypes data_ptr base
"""

NEVER_FIELDS = frozenset(_TEXT.split())
"""Attributes that reach code, frames or memory: refused even where a task has a field of that name."""
