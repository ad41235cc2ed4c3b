"""Channels push questions to people and bring their answers back; the dispatcher sees to it that none is lost."""
