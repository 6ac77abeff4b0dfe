"""Runs as pages over HTTP, read-only, as they grow; `jaxreward serve`."""

from jaxreward.serving.catalogue import Catalogue
from jaxreward.serving.server import Server

__all__ = ["Catalogue", "Server"]
