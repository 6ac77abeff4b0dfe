"""RDA's figures."""
