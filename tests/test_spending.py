"""What the plan of a search says of language models' cost."""

from __future__ import annotations

import pytest

from jaxreward.commands.spending import Spending
from jaxreward.proposers.llm.cost import Estimate


@pytest.mark.parametrize(
    ("estimate", "ends"),
    [
        (Estimate(0.5, 2.0, ()), "tokens: about $0.50, at most $2.00 without retries"),
        (Estimate(0.0, 0.0, ("openai/x",)), "tokens; the price of openai/x is not known (--price)"),
        (Estimate(0.5, 2.0, ("openai/x",)), "and what openai/x costs, whose price is not known (--price)"),
    ],
    ids=["known", "unknown", "some"],
)
def test_an_unknown_cost_is_not_zero(estimate, ends):
    text = Spending(calls=20, prompt_tokens=5000, estimate=estimate).text()
    assert text.endswith(ends) and ("$0.00" not in text)
