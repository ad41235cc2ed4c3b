"""Ways to the operator's side: the listener with its page, the socket, links in messages and Slack's buttons."""
