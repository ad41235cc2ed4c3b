"""Questions to people: the inbox that keeps them, grants that remember answers, and channels that push them."""
