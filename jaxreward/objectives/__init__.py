"""What turns programs into scores: `training`, and `demonstrations`."""
