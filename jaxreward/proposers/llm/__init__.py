"""Language models as proposers: calls through litellm, their cost, their failures."""
