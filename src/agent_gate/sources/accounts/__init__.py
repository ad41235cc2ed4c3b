"""Credentials that come from references and connected accounts, and the tools by which agents connect them."""
