"""FORGE's tables 2 and 3 and figures 2 and 3."""
