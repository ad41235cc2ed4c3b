"""The routes of the admin API, a module for each thing they are about."""
