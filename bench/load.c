// A closed loop of HTTP/1.1 requests over kept-alive connections; every answer is checked.
//
//   load PORT CONNECTIONS SECONDS REQUEST_FILE MARK [CALLS_PER_SECOND]
//
// REQUEST_FILE holds one request as bytes. "@@@@@@@@" in it is replaced by eight digits that are new for each
// request and must come back in its answer, together with MARK. With a rate, requests are spread over time
// instead of following each other. Prints one line of JSON.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HOLES = 32, DIGITS = 8 };

typedef struct {
  int socket;
  char *request, *answer;
  size_t received, room;
  double sent_at;
  char digits[DIGITS + 1];
  int busy;
} Connection;

static char *template;
static size_t template_size, holes[MOST_HOLES], hole_count;
static unsigned next_number = 10000000;
static float *times;
static size_t time_count, time_room = 1 << 20;
static long bad, done;
static char first_bad[300];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char *why) {
  fprintf(stderr, "load: %s: %s\n", why, strerror(errno));
  exit(1);
}

static void read_template(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail(path);
  fseek(file, 0, SEEK_END);
  template_size = ftell(file);
  rewind(file);
  template = malloc(template_size + 1);
  if (fread(template, 1, template_size, file) != template_size) fail(path);
  fclose(file);
  char *at = template;
  while (hole_count < MOST_HOLES && (at = memmem(at, template + template_size - at, "@@@@@@@@", DIGITS))) {
    holes[hole_count++] = at - template;
    at += DIGITS;
  }
}

static void open_connection(Connection *c, int epoll, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1;
  c->socket = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(c->socket, (struct sockaddr *)&address, sizeof address)) fail("connect");
  setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->socket, &event);
  c->received = 0;
  c->busy = 0;
}

static void send_request(Connection *c) {
  snprintf(c->digits, sizeof c->digits, "%08u", next_number++);
  for (size_t i = 0; i < hole_count; i++) memcpy(c->request + holes[i], c->digits, DIGITS);
  c->sent_at = now();
  c->busy = 1;
  for (size_t sent = 0; sent < template_size;) {
    ssize_t n = send(c->socket, c->request + sent, template_size - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += n;
  }
}

static const char *header(const Connection *c, const char *end, const char *name) {
  size_t size = strlen(name);
  for (const char *line = c->answer; line < end;) {
    if (!strncasecmp(line, name, size)) return line + size;
    const char *next = memmem(line, end - line, "\r\n", 2);
    if (!next) break;
    line = next + 2;
  }
  return NULL;
}

// The size of the answer that is there whole, or 0; `body` is where its body begins.
static size_t whole(const Connection *c, size_t *body) {
  char *end = memmem(c->answer, c->received, "\r\n\r\n", 4);
  if (!end) return 0;
  *body = end + 4 - c->answer;
  if (header(c, end, "transfer-encoding:")) {
    for (size_t at = *body;;) {
      char *line = memmem(c->answer + at, c->received - at, "\r\n", 2);
      if (!line) return 0;
      size_t size = strtoul(c->answer + at, NULL, 16);
      at = line + 2 - c->answer + size + 2;
      if (at > c->received) return 0;
      if (!size) return at;
    }
  }
  const char *length = header(c, end, "content-length:");
  size_t total = *body + (length ? strtoul(length, NULL, 10) : 0);
  return c->received >= total ? total : 0;
}

static void note(Connection *c, size_t body, size_t size, const char *mark) {
  int good = !memcmp(c->answer, "HTTP/1.1 200", 12) && memmem(c->answer + body, size - body, mark, strlen(mark));
  if (good && hole_count) good = memmem(c->answer + body, size - body, c->digits, DIGITS) != NULL;
  if (!good && !bad++) snprintf(first_bad, sizeof first_bad, "%.*s", (int)(size < 299 ? size : 299), c->answer);
  if (time_count == time_room) times = realloc(times, (time_room *= 2) * sizeof *times);
  times[time_count++] = (now() - c->sent_at) * 1e3;
  done++;
}

// Read what is there; 1 when an answer was complete, -1 when the connection ended.
static int receive(Connection *c, const char *mark) {
  if (c->room - c->received < 65536) c->answer = realloc(c->answer, c->room *= 2);
  ssize_t n = recv(c->socket, c->answer + c->received, c->room - c->received, MSG_DONTWAIT);
  if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
  c->received += n;
  size_t body, size = whole(c, &body);
  if (!size) return 0;
  note(c, body, size, mark);
  int ends = header(c, c->answer + body - 2, "connection: close") != NULL;
  memmove(c->answer, c->answer + size, c->received - size);
  c->received -= size;
  c->busy = 0;
  return ends ? -1 : 1;
}

static int ascending(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static double quantile(double q) { return time_count ? times[(size_t)((time_count - 1) * q)] : 0; }

int main(int count, char **arguments) {
  if (count < 6) return fprintf(stderr, "usage: load PORT CONNECTIONS SECONDS REQUEST_FILE MARK [CALLS_PER_SECOND]\n"), 2;
  int port = atoi(arguments[1]), connections = atoi(arguments[2]);
  double seconds = atof(arguments[3]), rate = count > 6 ? atof(arguments[6]) : 0;
  read_template(arguments[4]);
  const char *mark = arguments[5];
  times = malloc(time_room * sizeof *times);
  int epoll = epoll_create1(0);
  Connection *all = calloc(connections, sizeof *all);
  for (int i = 0; i < connections; i++) {
    all[i].request = malloc(template_size);
    memcpy(all[i].request, template, template_size);
    all[i].answer = malloc(all[i].room = 1 << 18);
    open_connection(&all[i], epoll, port);
  }
  double began = now(), end = began + seconds, last = began;
  long started = 0, broken = 0;
  if (!rate)
    for (int i = 0; i < connections; i++) send_request(&all[i]);
  struct epoll_event events[256];
  while ((last = now()) < end) {
    if (rate)
      for (int i = 0; i < connections && started < (last - began) * rate; i++)
        if (!all[i].busy) started++, send_request(&all[i]);
    int ready = epoll_wait(epoll, events, 256, rate ? 1 : 100);
    for (int i = 0; i < ready; i++) {
      Connection *c = events[i].data.ptr;
      int got = receive(c, mark);
      if (got < 0) {
        broken += c->busy;
        close(c->socket);
        open_connection(c, epoll, port);
      }
      if (got && !rate) send_request(c);
    }
  }
  qsort(times, time_count, sizeof *times, ascending);
  printf("{\"calls\":%ld,\"seconds\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"bad\":%ld,\"broken\":%ld}\n",
         done, last - began, quantile(.5), quantile(.99), quantile(1), bad, broken);
  if (bad) fprintf(stderr, "first bad answer: %s\n", first_bad);
  return 0;
}
