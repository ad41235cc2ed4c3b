// A cheap upstream: an MCP server over Streamable HTTP or stdio, and a plain JSON API.
//
//   upstream PORT        POST /mcp                tools echo and big
//                        POST /tools/N/NAME/mcp   NAME_echo and N - 1 more
//                        POST /hang/mcp           lists echo, never answers a call
//                        POST /flap/mcp           lists echo, hangs up on every second call
//                        POST /api/echo           {"text": …} back
//   upstream stdio       the same MCP server, a line per message
//
// One thread. JSON is searched, not parsed: it trusts whoever calls it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
  char *bytes;
  size_t size, room;
} Buffer;

typedef struct {
  int socket;
  Buffer in, out;
  size_t sent;
} Connection;

typedef struct {
  const char *at;
  size_t size;
} Span;

static void add(Buffer *b, const char *bytes, size_t size) {
  if (b->size + size > b->room) b->bytes = realloc(b->bytes, b->room = (b->size + size) * 2);
  memcpy(b->bytes + b->size, bytes, size);
  b->size += size;
}

static void say(Buffer *b, const char *text) { add(b, text, strlen(text)); }

// The value of a key of the outermost object in `text`.
static Span member(Span text, const char *key) {
  size_t key_size = strlen(key);
  const char *p = text.at, *end = p + text.size;
  int depth = 0;
  for (; p < end; p++) {
    if (*p == '{' || *p == '[') depth++;
    else if (*p == '}' || *p == ']') depth--;
    else if (*p == '"') {
      const char *start = ++p;
      while (p < end && *p != '"') p += *p == '\\' ? 2 : 1;
      const char *colon = p + 1;
      while (colon < end && *colon == ' ') colon++;
      if (depth != 1 || *colon != ':' || (size_t)(p - start) != key_size || memcmp(start, key, key_size)) continue;
      for (p = colon + 1; p < end && *p == ' ';) p++;
      const char *value = p;
      int inside = 0;
      for (; p < end; p++) {
        if (*p == '"') {
          for (p++; p < end && *p != '"'; p++) p += *p == '\\';
        } else if (*p == '{' || *p == '[') inside++;
        else if ((*p == '}' || *p == ']') && !inside--) break;
        else if (*p == ',' && !inside) break;
      }
      return (Span){value, p - value};
    }
  }
  return (Span){NULL, 0};
}

static int is(Span value, const char *text) {
  return value.at && value.size == strlen(text) && !memcmp(value.at, text, value.size);
}

static void tool(Buffer *out, const char *name) {
  char text[900];
  snprintf(text, sizeof text,
           "{\"name\":\"%s\",\"description\":\"Returns the record in question with its identifier, state and times; use "
           "the cursor to page through long results.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{"
           "\"type\":\"string\",\"description\":\"Free text\"},\"kib\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"
           "65536},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":20},\"state\":{\"type\":"
           "\"string\",\"enum\":[\"open\",\"closed\",\"all\"]}}}}",
           name);
  say(out, text);
}

static void list(Buffer *out, int count, const char *name) {
  char text[160];
  say(out, "{\"tools\":[");
  snprintf(text, sizeof text, "%s%secho", name, *name ? "_" : "");
  tool(out, text);
  if (!*name) say(out, ","), tool(out, "big");
  for (int i = 1; i < count; i++) {
    snprintf(text, sizeof text, "%s_record_%04d", name, i);
    say(out, ","), tool(out, text);
  }
  say(out, "]}");
}

static void call(Buffer *out, Span params) {
  Span arguments = member(params, "arguments"), text = member(arguments, "text");
  say(out, "{\"content\":[{\"type\":\"text\",\"text\":");
  if (is(member(params, "name"), "\"big\"")) {
    static char filler[1024];
    memset(filler, 'x', sizeof filler);
    say(out, "\"hello ");
    for (long kib = atol(member(arguments, "kib").at ?: "1"); kib > 0; kib--) add(out, filler, sizeof filler);
    say(out, "\"");
  } else add(out, text.at ? text.at : "\"\"", text.at ? text.size : 2);
  say(out, "}],\"isError\":false}");
}

// One message in, its answer out; nothing for a notification.
static void answer(Buffer *out, Span message, int count, const char *name) {
  Span method = member(message, "method"), id = member(message, "id");
  if (!id.at) return;
  say(out, "{\"jsonrpc\":\"2.0\",\"id\":"), add(out, id.at, id.size), say(out, ",");
  if (is(method, "\"tools/call\"")) say(out, "\"result\":"), call(out, member(message, "params"));
  else if (is(method, "\"tools/list\"")) say(out, "\"result\":"), list(out, count, name);
  else if (is(method, "\"ping\"")) say(out, "\"result\":{}");
  else if (is(method, "\"initialize\""))
    say(out, "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
             "\"serverInfo\":{\"name\":\"upstream\",\"version\":\"1\"}}");
  else say(out, "\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
  say(out, "}");
}

static void reply(Buffer *out, const char *status, Buffer *body) {
  char head[160];
  snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", status, body->size);
  say(out, head), add(out, body->bytes, body->size);
}

// Answer one request to `path`; 0 hangs up.
static int serve(Connection *c, const char *path, int post, Span body) {
  static Buffer text;
  static int flaps;
  int count = 1;
  char name[64] = "";
  int called = is(member(body, "method"), "\"tools/call\"");
  text.size = 0;
  if (!strcmp(path, "/api/echo")) say(&text, "{\"text\":"), add(&text, member(body, "text").at, member(body, "text").size), say(&text, "}");
  else if (!post) return reply(&c->out, "405 Method Not Allowed", &text), 1;
  else if (!strcmp(path, "/hang/mcp") && called) return 1;
  else if (!strcmp(path, "/flap/mcp") && called && flaps++ % 2) return 0;
  else {
    sscanf(path, "/tools/%d/%63[^/]/", &count, name);
    answer(&text, body, count, name);
    if (!text.size) return reply(&c->out, "202 Accepted", &text), 1;
  }
  return reply(&c->out, "200 OK", &text), 1;
}

// Take one whole request off the input: 1 if there was one, 0 if not yet, -1 to hang up.
static int take(Connection *c) {
  char *end = memmem(c->in.bytes, c->in.size, "\r\n\r\n", 4), path[160] = "", method[8] = "";
  if (!end) return 0;
  size_t head = end + 4 - c->in.bytes, length = 0;
  for (char *line = c->in.bytes; line < end;) {
    if (!strncasecmp(line, "content-length:", 15)) length = strtoul(line + 15, NULL, 10);
    line = (char *)memmem(line, end + 2 - line, "\r\n", 2) + 2;
  }
  if (c->in.size < head + length) return 0;
  sscanf(c->in.bytes, "%7s %159s", method, path);
  if (!serve(c, path, !strcmp(method, "POST"), (Span){c->in.bytes + head, length})) return -1;
  memmove(c->in.bytes, c->in.bytes + head + length, c->in.size - head - length);
  c->in.size -= head + length;
  return 1;
}

static int fill(Buffer *b, int from) {
  if (b->room - b->size < 65536) b->bytes = realloc(b->bytes, b->room = b->room ? b->room * 2 : 1 << 17);
  ssize_t n = read(from, b->bytes + b->size, b->room - b->size);
  if (n <= 0) return n < 0 && errno == EAGAIN;
  b->size += n;
  return 1;
}

static int flush(Connection *c, int epoll) {
  while (c->sent < c->out.size) {
    ssize_t n = send(c->socket, c->out.bytes + c->sent, c->out.size - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return 0;
    c->sent += n;
  }
  int left = c->sent < c->out.size;
  if (!left) c->sent = c->out.size = 0;
  struct epoll_event event = {.events = EPOLLIN | (left ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_MOD, c->socket, &event);
  return 1;
}

static int over_stdio(void) {
  Buffer in = {0}, out = {0};
  while (fill(&in, 0)) {
    char *line = in.bytes, *end;
    while ((end = memchr(line, '\n', in.bytes + in.size - line))) {
      size_t before = out.size;
      answer(&out, (Span){line, end - line}, 1, "");
      if (out.size > before) say(&out, "\n");
      line = end + 1;
    }
    in.size -= line - in.bytes;
    memmove(in.bytes, line, in.size);
    for (size_t sent = 0; sent < out.size;) {
      ssize_t n = write(1, out.bytes + sent, out.size - sent);
      if (n <= 0) return 0;
      sent += n;
    }
    out.size = 0;
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count < 2) return fprintf(stderr, "usage: upstream PORT|stdio\n"), 2;
  if (!strcmp(arguments[1], "stdio")) return over_stdio();
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1, epoll = epoll_create1(0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) return perror("upstream"), 1;
  struct epoll_event event = {.events = EPOLLIN}, events[256];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < ready; i++) {
      Connection *c = events[i].data.ptr;
      if (!c) {
        int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (socket < 0) continue;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        c = calloc(1, sizeof *c);
        c->socket = socket;
        struct epoll_event new = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &new);
        continue;
      }
      int alive = !(events[i].events & EPOLLIN) || fill(&c->in, c->socket), took = 1;
      while (alive && (took = take(c)) > 0) continue;
      if (!alive || took < 0 || !flush(c, epoll)) {
        close(c->socket);
        free(c->in.bytes), free(c->out.bytes), free(c);
      }
    }
  }
}
