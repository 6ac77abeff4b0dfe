"""Numerical kernels, one operation a file: pure, unbatched functions of JAX arrays.

Callers vmap; `linalg` takes batches, for its functions replace primitives. A kernel with a faster form has its plain
reference in the same file. The folder is at the top of the repository and is installed as
`jaxreward.kernels`; it imports nothing of the rest of the package.
"""
