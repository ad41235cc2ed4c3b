"""The protocol itself, each part of it once; whoever speaks it, to callers or to servers, speaks it from here."""
