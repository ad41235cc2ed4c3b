"""The record of every call: rows, their hash chain, its seals, and the ways to read and export it."""
