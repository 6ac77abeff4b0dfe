"""The objective of a search for rewards of states that are text."""
