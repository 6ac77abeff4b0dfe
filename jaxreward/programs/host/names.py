"""The names that a program on text may use: an allow-list."""

from __future__ import annotations

from jaxreward.programs.names import name_set

_TYPES = name_set("Any Callable Dict Iterable Iterator List Mapping Match Optional Pattern Sequence Set Tuple Union")

API = {
    "re": name_set(
        """
        search match fullmatch findall finditer split sub subn escape compile error Match Pattern A ASCII I IGNORECASE M
        MULTILINE S DOTALL X VERBOSE
        """
    ),
    "math": name_set("ceil copysign dist e exp fabs floor fmod fsum hypot inf isclose isfinite isinf isnan log log10"
                     " log1p log2 nan pi pow prod sqrt tanh trunc"),
    "json": name_set("loads dumps JSONDecodeError"),
    "html": name_set("escape unescape"),
    "collections": name_set("Counter defaultdict"),
    "typing": _TYPES,
    "collections.abc": _TYPES & name_set("Callable Iterable Iterator Mapping Sequence"),
    "xml.etree.ElementTree": name_set("fromstring XML Element ParseError"),
}  # fmt: skip
"""What there is of each module. None of it opens a file or a connection, draws a number or reads a clock."""

BUILTINS = name_set(
    """
    abs all any bool dict divmod enumerate filter float frozenset int isinstance len list map max min next ord chr pow
    range reversed round set slice sorted str sum tuple zip
    Exception ArithmeticError AttributeError IndexError KeyError LookupError OverflowError StopIteration TypeError
    ValueError ZeroDivisionError
    """
)

ATTRIBUTES = name_set(
    """
    capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace
    istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition
    rsplit rstrip split splitlines startswith strip swapcase title upper zfill
    append clear copy extend insert pop remove reverse sort
    get items keys values update setdefault most_common elements
    add discard difference intersection isdisjoint issubset issuperset symmetric_difference union
    search match fullmatch findall finditer sub subn group groups groupdict start end span lastgroup lastindex
    tag text tail attrib iter itertext findtext
    is_integer
    """
)
"""Attributes of strings, containers, matches of `re` and elements of a parsed tree. `format` is not among them: its
text could name any attribute."""
