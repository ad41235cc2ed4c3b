"""Requests on their way to one server: what is sent (`order`), what every transport offers (`link`), the transports
(`stdio`, `http` with its `heads` and `replies`, `sse`; `mux` for those with one stream for everything), what is read
(`frames`), and how they fail (`problems`)."""
