/* Video over UDP on the loopback interface, for a few seconds: a sender with its pacer and its probes, and a receiver with the
   feedback that the controller needs. Both ends run in one loop of one thread; the sockets between them are real.
   Arguments: seconds, controller, parameters of the controller as NAME=VALUE.

   The loopback interface is faster than any video. The receiver therefore passes packets through a link of CAPACITY. */
#define _POSIX_C_SOURCE 200809L
#include "paceline.h"
#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  PACKET = 1200,       /* bytes on the network */
  HEADERS = 28,        /* IP and UDP */
  RTP_HEADER = 24,     /* with two extensions: transport-wide sequence number, and time of sending */
  WAITING_MAX = 4096,  /* packets on the link */
  SSRC = 1000,
  SETTINGS_MAX = 16,
  SIGNALS_MAX = 256, /* enough for every controller */
};
static const int64_t MS = 1000000, SECOND = 1000000000;
static const uint64_t CAPACITY = 3000000; /* bit/s */
static const int64_t CLOCK_OFFSET = 77 * 1000000000LL; /* of the receiver's clock, which has an origin of its own */

/* A link with a queue: packets and their arrival at its end. */
typedef struct {
  int64_t free_ns;
  size_t first, count;
  struct { int64_t arrival_ns; PacelineReceivedPacket packet; } waiting[WAITING_MAX];
} Link;

static int64_t now(void) {
  static int64_t start;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  int64_t ns = t.tv_sec * SECOND + t.tv_nsec;
  if (start == 0) start = ns;
  return ns - start;
}

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "error %d: %s\n", status, paceline_last_error());
    exit(1);
  }
}

static int open_socket(struct sockaddr_in *address) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  socklen_t length = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (fd < 0 || bind(fd, (struct sockaddr *)address, length) || getsockname(fd, (struct sockaddr *)address, &length)) {
    perror("socket");
    exit(1);
  }
  return fd;
}

static void send_to(int fd, const void *bytes, size_t length, const struct sockaddr_in *to) {
  /* A datagram that the system refuses is one that the network lost. */
  (void)!sendto(fd, bytes, length, 0, (const struct sockaddr *)to, sizeof *to);
}

/* The RTP timestamps of the last frames; packets of a frame share one. The token of a packet is the number of its frame. */
static uint32_t timestamps[256];
static uint64_t last_frame;

/* Cuts a frame of 33 ms at the target into packets, and queues them. */
static void push_frame(PacelineSender *sender, int64_t now_ns, const PacelineLimits *limits) {
  timestamps[++last_frame % 256] = (uint32_t)(now_ns / 1000 * 90 / 1000);
  PacelineFramePacket packets[64];
  uint64_t bytes = paceline_sender_target(sender) * 33 / 8000;
  size_t count = 0;
  do {
    uint64_t size = bytes < PACKET ? bytes : PACKET;
    packets[count++] = (PacelineFramePacket){last_frame, size < 100 ? 100 : size};
    bytes -= size;
  } while (bytes > 0 && count < 64);
  int status = paceline_sender_push_frame(sender, now_ns, packets, count, 0, limits->min_bps, limits->max_bps);
  if (status != PACELINE_ERROR_FULL) check(status);
}

/* Writes an RTP packet: version 2, extensions of RFC 8285 with ids 1 and 2. The payload is empty video. Controllers whose estimator is
   at the receiver need the time of sending: 24 bits, 6 of seconds and 18 of their fraction. */
static void send_packet(int fd, const struct sockaddr_in *to, const PacelinePacket *packet, int64_t now_ns) {
  uint8_t bytes[PACKET] = {0x90, 96};
  uint16_t number = htons((uint16_t)packet->sequence);
  uint32_t timestamp = htonl(timestamps[(packet->token ? packet->token : last_frame) % 256]), ssrc = htonl(SSRC);
  uint32_t sent = (uint32_t)((uint64_t)(now_ns / 1000 % 64000000) * (1 << 18) / 1000000);
  memcpy(bytes + 2, &number, 2);
  memcpy(bytes + 4, &timestamp, 4);
  memcpy(bytes + 8, &ssrc, 4);
  memcpy(bytes + 12, (uint8_t[]){0xbe, 0xde, 0, 2, 0x11}, 5);
  memcpy(bytes + 17, &number, 2);
  memcpy(bytes + 19, (uint8_t[]){0x22, (uint8_t)(sent >> 16), (uint8_t)(sent >> 8), (uint8_t)sent}, 4);
  send_to(fd, bytes, packet->size_bytes - HEADERS, to);
}

/* Reads a packet and puts it on the link. */
static bool receive_packet(int fd, Link *link) {
  uint8_t bytes[2048];
  ssize_t length = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (length < RTP_HEADER) return length >= 0;
  uint16_t rtp, transport;
  uint32_t timestamp;
  memcpy(&rtp, bytes + 2, 2);
  memcpy(&timestamp, bytes + 4, 4);
  memcpy(&transport, bytes + 17, 2);
  if (link->count == WAITING_MAX) return true;
  int64_t at = now();
  size_t last = (link->first + link->count++) % WAITING_MAX;
  link->free_ns = (link->free_ns > at ? link->free_ns : at) + (length + HEADERS) * 8 * SECOND / (int64_t)CAPACITY;
  link->waiting[last].arrival_ns = link->free_ns;
  link->waiting[last].packet = (PacelineReceivedPacket){
      .size = sizeof(PacelineReceivedPacket), .size_bytes = (uint64_t)length + HEADERS, .transport_sequence = ntohs(transport),
      .abs_send_time = bytes[20] << 16 | bytes[21] << 8 | bytes[22],
      .rtp_timestamp = ntohl(timestamp), .rtp_sequence = ntohs(rtp)};
  return true;
}

/* Delivers the packets that have passed the link, and sends feedback. */
static void run_receiver(PacelineReceiver *receiver, Link *link, int fd, const struct sockaddr_in *to) {
  while (link->count > 0 && link->waiting[link->first].arrival_ns <= now()) {
    int64_t at = link->waiting[link->first].arrival_ns + CLOCK_OFFSET;
    check(paceline_receiver_packet(receiver, at, &link->waiting[link->first].packet));
    link->first = (link->first + 1) % WAITING_MAX, link->count--;
  }
  uint8_t rtcp[1200];
  size_t length;
  int status;
  check(paceline_receiver_on_timeout(receiver, now() + CLOCK_OFFSET));
  while ((status = paceline_receiver_poll_rtcp(receiver, now() + CLOCK_OFFSET, rtcp, sizeof rtcp, &length)) == PACELINE_OK)
    send_to(fd, rtcp, length, to);
  check(status);
}

/* Reads a parameter, NAME=VALUE. */
static PacelineSetting parse_setting(char *text) {
  char *equals = strchr(text, '='), *end = equals;
  double value = equals ? strtod(equals + 1, &end) : 0;
  if (!equals || end == equals + 1 || *end != 0) {
    fprintf(stderr, "a parameter must be NAME=VALUE, not `%s`\n", text);
    exit(2);
  }
  *equals = 0;
  return (PacelineSetting){text, value};
}

/* Prints what the send half shows: a program that draws curves reads the names once, and the values after each call. */
static void print_signals(PacelineSender *sender, const char *controller) {
  double values[SIGNALS_MAX];
  PacelineSignal signal;
  check(paceline_sender_signals(sender, values, SIGNALS_MAX));
  for (size_t i = 0; paceline_controller_signal(controller, PACELINE_HALF_SEND, i, &signal) == PACELINE_OK; i++) {
    if (isnan(values[i])) continue;
    const char *state;
    bool has_states = paceline_controller_signal_state(controller, PACELINE_HALF_SEND, i, 0, &state) == PACELINE_OK;
    if (has_states)
      check(paceline_controller_signal_state(controller, PACELINE_HALF_SEND, i, (size_t)values[i], &state));
    if (has_states)
      printf("  %s: %s\n", signal.name, state);
    else
      printf("  %s: %g %s\n", signal.name, values[i], signal.unit ? signal.unit : "");
  }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int main(int argc, char **argv) {
  int64_t end = (argc > 1 ? atoi(argv[1]) : 4) * SECOND, next_frame = 0, next_line = SECOND;
  const char *controller = argc > 2 ? argv[2] : "googcc";
  PacelineLimits limits = {.size = sizeof limits, .start_bps = 300000, .min_bps = 50000, .max_bps = 10000000};
  PacelineSender *sender;
  PacelineReceiver *receiver;
  static Link link;
  struct sockaddr_in sender_at, receiver_at;
  int media = open_socket(&sender_at), remote = open_socket(&receiver_at);
  PacelineSetting settings[SETTINGS_MAX];
  size_t count = 0;
  for (int i = 3; i < argc && count < SETTINGS_MAX; i++) settings[count++] = parse_setting(argv[i]);
  check(paceline_sender_create_with(controller, &limits, settings, count, &sender));
  check(paceline_receiver_create_with(controller, &limits, 2000, SSRC, settings, count, &receiver));
  check(paceline_sender_enable_signals(sender));
  unsigned probes = 0, padding = 0;

  for (int64_t at; (at = now()) < end;) {
    if (at >= next_frame) next_frame = at + 33 * MS, push_frame(sender, at, &limits);
    uint8_t rtcp[2048];
    ssize_t length;
    while ((length = recv(media, rtcp, sizeof rtcp, MSG_DONTWAIT)) >= 0) {
      int status = paceline_sender_rtcp(sender, now(), rtcp, (size_t)length);
      if (status != PACELINE_ERROR_RTCP) check(status);
    }
    check(paceline_sender_on_timeout(sender, now()));
    PacelinePacket packet = {.size = sizeof packet};
    int status;
    while ((status = paceline_sender_poll_packet(sender, now(), &packet)) == PACELINE_OK) {
      probes += packet.probe != PACELINE_NO_PROBE;
      padding += packet.kind == PACELINE_KIND_PADDING;
      /* RFC 8888 feedback, which controllers with ECN get, names the packet by these numbers. */
      check(paceline_sender_rtp_number(sender, packet.sequence, SSRC, (uint16_t)packet.sequence));
      send_packet(media, &receiver_at, &packet, at);
    }
    check(status);
    while (receive_packet(remote, &link)) {}
    run_receiver(receiver, &link, remote, &sender_at);
    PacelineEvent event = {.size = sizeof event};
    while (paceline_sender_poll_event(sender, &event) == PACELINE_OK)
      if (event.kind == PACELINE_EVENT_FEEDBACK_LOST) printf("no feedback arrives\n");
    if (at >= next_line) {
      printf("%lld s: target %llu kbit/s\n", (long long)(next_line / SECOND),
             (unsigned long long)paceline_sender_target(sender) / 1000);
      next_line += SECOND;
    }
    int64_t due = least(next_frame, paceline_sender_next_timeout(sender));
    int64_t feedback = paceline_receiver_next_timeout(receiver);
    if (feedback != PACELINE_NEVER) due = least(due, feedback - CLOCK_OFFSET);
    if (link.count > 0) due = least(due, link.waiting[link.first].arrival_ns);
    int64_t wait = due - now();
    struct pollfd fds[] = {{.fd = media, .events = POLLIN}, {.fd = remote, .events = POLLIN}};
    poll(fds, 2, wait > 0 ? (int)(wait / MS) + 1 : 0);
  }
  PacelineSnapshot snapshot = {.size = sizeof snapshot};
  check(paceline_sender_snapshot(sender, &snapshot));
  printf("target %llu kbit/s on a link of %llu kbit/s; %llu packets, %u in probes, %u of padding; %llu arrived, %llu lost\n",
         (unsigned long long)paceline_sender_target(sender) / 1000, (unsigned long long)CAPACITY / 1000,
         (unsigned long long)snapshot.packets_sent, probes, padding, (unsigned long long)snapshot.packets_arrived,
         (unsigned long long)snapshot.packets_lost);
  print_signals(sender, controller);
  paceline_receiver_destroy(receiver);
  paceline_sender_destroy(sender);
  close(media), close(remote);
  return 0;
}
