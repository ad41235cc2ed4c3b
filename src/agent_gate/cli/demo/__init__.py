"""Something real to try at once: a small home with lights, a lock and sensors, and a gateway in front of it."""
