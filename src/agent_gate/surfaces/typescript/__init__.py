"""`GET /runtime/tools.ts`: the catalog as a typed TypeScript module that Deno, Node and browsers can import.

`names` turns tool names into identifiers, `types` JSON Schema into types, `comments` descriptions into comments
that cannot end early, `module` all of it into one module around `runtime.ts`; `surface` answers requests.
"""
