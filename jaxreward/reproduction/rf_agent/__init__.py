"""RF-Agent's tables."""
