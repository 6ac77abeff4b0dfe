"""Tasks on the environments of Brax (the package `brax` of pip, which absolute imports find)."""

from jaxreward.extras import require

require("brax", __name__)
