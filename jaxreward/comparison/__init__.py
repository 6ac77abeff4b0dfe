"""Searches compared at equal budgets: cells of strategy, proposer, task and seed, and the tables over them."""
