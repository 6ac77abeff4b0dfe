"""Functions of Python as text: a program, or a fragment of a vocabulary, from the functions of a notebook or a script.

Sources are found by `inspect` and parsed; what they refer to is looked up, and written out. No function is called.
"""

from jaxreward.function_source.reader import EditedFunction, UnreadableFunction, name_of, own_text
from jaxreward.function_source.writer import OR_TRUSTED, FragmentText, fragment_text, role_of, source_of

__all__ = [
    "OR_TRUSTED", "EditedFunction", "FragmentText", "UnreadableFunction", "fragment_text", "name_of", "own_text",
    "role_of", "source_of",
]  # fmt: skip
