"""BabyAI levels in JAX, as tasks `babyai/<level>` (docs/levels.md)."""
