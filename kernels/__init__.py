"""Numerical kernels, one operation a file: pure, unbatched functions of JAX arrays.

Callers vmap; `linalg` takes batches, for its functions stand in for primitives. A kernel with a faster form keeps its
plain reference in the same file. The folder stands at the top of the repository and is installed as
`jaxreward.kernels`; it imports nothing of the rest of the package.
"""
