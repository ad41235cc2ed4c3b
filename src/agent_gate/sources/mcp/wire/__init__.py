"""Requests on their way to one server: what is sent (`order`), what every transport offers (`link`), the transports
(`stdio`, `http`, `sse`; `mux` for those with one stream for everything), and how they fail (`problems`)."""
