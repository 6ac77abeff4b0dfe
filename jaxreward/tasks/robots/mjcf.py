"""MJCF of a robot and of other bodies put together."""

from __future__ import annotations

from xml.etree import ElementTree


def merged(robot: str, bodies: str) -> str:
    """The MJCF of a robot beside the bodies of another model, with their cameras, contacts and keyframe.

    Raises:
        ValueError: the other model has options of its own.
    """
    root = ElementTree.fromstring(robot)
    for part in ElementTree.fromstring(bodies):
        known = root.find(part.tag)
        if known is None:
            root.append(part)
        elif part.attrib:
            raise ValueError(f"both models have a <{part.tag}> with attributes")
        else:
            known.extend(part)
    return ElementTree.tostring(root, encoding="unicode")


def child(node: ElementTree.Element, path: str) -> ElementTree.Element:
    """The element at `path` below `node`.

    Raises:
        ValueError: there is none.
    """
    found = node.find(path)
    if found is None:
        raise ValueError(f"the model has no {path}")
    return found
