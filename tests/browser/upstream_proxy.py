"""A proxy as companies have them, in a process of its own: `CONNECT` alone, and a line for each that it was asked for.

`python upstream_proxy.py LOG [USER:PASSWORD]` prints its port. Hosts whose port ends in what the file `LOG.refused`
holds are refused.
"""

import asyncio
import base64
import sys
from pathlib import Path


async def pass_on(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class Proxy:
    def __init__(self, log, login):
        self.log, self.refused = Path(log), Path(f"{log}.refused")
        self.wanted = f"basic {base64.b64encode(login.encode()).decode()}" if login else ""

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, place, _ = head.split(" ", 2)
        with self.log.open("a") as out:
            out.write(f"{method} {place}\n")
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.splitlines()[1:])
        }
        given = fields.get("proxy-authorization", "")
        if self.wanted and given.partition(" ")[2] != self.wanted.partition(" ")[2]:
            return await self.end(writer, "407 Proxy Authentication Required")
        if method != "CONNECT" or (self.refused.exists() and place.endswith(self.refused.read_text())):
            return await self.end(writer, "403 Forbidden")
        host, _, port = place.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))
        return None

    async def end(self, writer, said):
        writer.write(f"HTTP/1.1 {said}\r\n\r\n".encode())
        await writer.drain()
        writer.close()


async def main(log, login=""):
    server = await asyncio.start_server(Proxy(log, login).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
