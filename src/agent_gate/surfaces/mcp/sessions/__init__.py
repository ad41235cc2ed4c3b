"""Sessions of the revisions that have them, and the event streams that clients come back to."""
