"""The nouns, pure and without I/O, and the ports that the rest of the program meets at.

Everything two folders exchange is defined here; nothing here imports another folder of ours but `errors`.
"""
