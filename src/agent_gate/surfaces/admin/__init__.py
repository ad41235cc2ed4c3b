"""The operator's side: one API, on the admin socket and on the admin listener. No agent token opens it."""
