"""People who log in at an OpenID provider: what it says of them, checked, and the sessions that come of it."""
