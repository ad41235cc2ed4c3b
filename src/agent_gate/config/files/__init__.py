"""Configuration files as text: read into nodes that know their place, edited without touching what stands beside."""
