"""The rim of the program: listeners, deadlines, TLS, the outbound HTTP pool and address checks.

Nothing here knows what a tool, a call or a token is. Inwards it hands on `http.Request` and takes back
`http.Response`; outwards it sends bytes exactly as given and tells the truth about whether they left.
"""
