"""Copies of runs at addresses of fsspec: file systems, buckets."""

from jaxreward.storage.mirror import Mirror, fetch
from jaxreward.storage.place import Place

__all__ = ["Mirror", "Place", "fetch"]
