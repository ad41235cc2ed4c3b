"""The Model Context Protocol, said once for the surface, the sources, the bridge and the in-client form.

`revisions`, `names`, `errors`, `headers` and `events` need nothing but the standard library, so that the bridge starts
at once; `messages` and `results` read JSON with msgspec.
"""
