"""The built-in source `agents`: what a person's yes to a sign-in leads to."""
