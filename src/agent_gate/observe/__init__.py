"""Logs, metrics, redaction and the crash harness's failpoints: what others see of the program while it runs."""
