"""Tasks on the environments of Brax (the package `brax` of pip, which absolute imports find)."""
