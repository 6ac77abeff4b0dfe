"""Copies of runs at addresses of fsspec: file systems, buckets."""

from jaxreward.storage.fetching import fetch
from jaxreward.storage.mirror import Mirror
from jaxreward.storage.place import Place

__all__ = ["Mirror", "Place", "fetch"]
