"""Turns a catalog into few tokens: cards, paths, ranking, cache-stable order and what each mode costs."""
