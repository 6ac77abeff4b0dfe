"""The objective of a search for rewards that tell an expert from others."""
