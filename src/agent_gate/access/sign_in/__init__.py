"""Agents that come in by signing in: clients, the sign-ins they begin, and the tokens that come of them."""
