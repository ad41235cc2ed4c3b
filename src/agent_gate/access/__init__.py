"""Who may come in and how much: tokens, quotas, and which tools a caller sees."""
