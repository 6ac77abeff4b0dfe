"""A hook of MkDocs: links to files of the repository outside of docs/ become text, for the site does not have them."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page with such links replaced by their words."""
    folder = posixpath.dirname(page.file.src_uri)

    def kept(link: re.Match[str]) -> str:
        outside = posixpath.normpath(posixpath.join(folder, link[2])).startswith("../")
        return link[1] if outside else link[0]

    return _LINK.sub(kept, markdown)
