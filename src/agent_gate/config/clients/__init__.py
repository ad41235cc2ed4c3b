"""The MCP configuration files of the clients people already use: found, read, extended and put back.

One module per client says where its files are and how it writes a server; `registry` lists them. Files are edited as
text (`config/files`), so that comments and order stay. Only `backup` touches the disk.
"""
