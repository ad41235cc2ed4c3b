"""Files into typed settings, with file, line and column in every error.

The settings types stand in `settings`, `permissions`, `services/settings` and `servers/settings` and import no
parser; `load.load` reads the files.
"""
