"""Turns large results into small ones: budgets, envelopes, artifacts and the views into them."""
