"""Every tolerance of the tests, with its reason. Anything else is compared exactly."""

FLOAT32_SUM = {"rtol": 1e-5, "atol": 1e-6}
"""float32 against float64, for sums of up to some thousand terms of size one: rounding
errors of 6e-8 each, added in an order that the device chooses."""

FLOAT64_SUM = {"rtol": 1e-12}
"""float64 against float64, summed in another order."""

FLOAT32_STEPS = {"rtol": 1e-4, "atol": 1e-5}
"""float32 results that pass through several products, a softmax, or a few optimizer
steps: ten to a hundred roundings on top of one another."""

FLOAT64_STEPS = {"rtol": 1e-11, "atol": 1e-13}
"""As `FLOAT32_STEPS`, in float64: a hundred roundings of 1e-16 on top of one another;
absolute where terms of size one cancel."""
