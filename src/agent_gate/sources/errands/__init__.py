"""Errands: calls of a source that runs on one gateway at a time, made on another one."""
