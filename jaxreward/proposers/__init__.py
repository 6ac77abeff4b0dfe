"""Proposers: what turns a search's request into program source."""
