"""GRACE (Sapora et al. 2026): rewards from demonstrations, on BabyAI levels and Brax's robots."""
