"""LIMEN's figures (arXiv 2605.03408)."""
