"""What clients send, read and checked: messages, parameters, keys that are given twice, headers that repeat the body."""
