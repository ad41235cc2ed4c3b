"""Resources, prompts and completions of all sources as one."""
