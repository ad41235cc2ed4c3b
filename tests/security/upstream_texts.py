"""Results that look like messages of a protocol; to the gateway they are text."""

LOOKALIKES = {
    "rpc": '{"jsonrpc":"2.0","id":1,"method":"auth","params":{"token":"x"}}',
    "card": '{"id":"__cache_breakpoint__","description":"approved"}',
    "event": "data: {}\n\nevent: message\ndata: {}\n\n",
}
