// The server's end of a WebSocket, as far as a handshake of short text messages needs it.
import { createHash } from "node:crypto";

const MOST = 64 << 10;

export function accept(request, socket) {
  const key = request.headers["sec-websocket-key"] ?? "";
  const answer = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${answer}\r\n\r\n`,
  );
  return new Line(socket);
}

class Line {
  #socket;
  #bytes = Buffer.alloc(0);
  #heard = [];
  #waiting = null;

  constructor(socket) {
    this.#socket = socket;
    socket.on("data", (data) => this.#read(data));
    socket.on("close", () => this.#put(new Error("the gateway is gone")));
    socket.on("error", () => {});
  }

  send(text) {
    const body = Buffer.from(text);
    const size = body.length;
    this.#socket.write(Buffer.concat([Buffer.from(size < 126 ? [0x81, size] : [0x81, 126, size >> 8, size & 255]), body]));
  }

  // The next message; an error where none comes in time.
  receive(seconds) {
    if (this.#heard.length) return Promise.resolve(this.#heard.shift()).then(orThrow);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the gateway did not answer in time")), seconds * 1000);
      this.#waiting = (message) => {
        clearTimeout(timer);
        resolve(message);
      };
    }).then(orThrow);
  }

  close() {
    this.#socket.end(Buffer.from([0x88, 2, 0x03, 0xe8]));
  }

  #put(message) {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting) waiting(message);
    else this.#heard.push(message);
  }

  #read(data) {
    this.#bytes = Buffer.concat([this.#bytes, data]);
    for (let frame; (frame = this.#frame()); ) {
      if (frame.opcode === 8) this.#socket.end();
      if (frame.opcode === 9) this.#socket.write(Buffer.concat([Buffer.from([0x8a, frame.body.length]), frame.body]));
      if (frame.opcode === 1) this.#put(frame.body.toString("utf8"));
    }
  }

  #frame() {
    const bytes = this.#bytes;
    if (bytes.length < 6) return null;
    const short = bytes[1] & 127;
    const start = short === 126 ? 4 : 2;
    const size = short === 126 ? bytes.readUInt16BE(2) : short;
    if (short === 127 || size > MOST || !(bytes[0] & 0x80) || !(bytes[1] & 0x80)) {
      this.#socket.destroy();
      return null;
    }
    if (bytes.length < start + 4 + size) return null;
    const mask = bytes.subarray(start, start + 4);
    const body = Buffer.from(bytes.subarray(start + 4, start + 4 + size)).map((byte, at) => byte ^ mask[at % 4]);
    this.#bytes = bytes.subarray(start + 4 + size);
    return { opcode: bytes[0] & 15, body };
  }
}

const orThrow = (message) => {
  if (message instanceof Error) throw message;
  return message;
};
