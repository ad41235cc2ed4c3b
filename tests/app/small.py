"""A gateway with one service behind it, whose tools read and write, as the tests of its life use it."""

CONFIG = """
gateway: {{id: t, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agent: {{token: {token}}}
services: {{home: {{url: "{url}", tools: tools.yaml}}}}
permissions: permissions.yaml
"""
TOOLS = """
tools:
  read: {args: {n: {type: integer}}, request: {method: GET, path: /read}}
  write: {args: {n: {type: integer}}, request: {method: POST, path: /write}}
"""
PERMISSIONS = 'rules: [{pattern: "read", action: allow}]'
