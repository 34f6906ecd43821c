/* A program whose header has shorter structs than the library, as an older one, or longer ones, as a newer one. Each struct has memory of
   its exact length, so that valgrind sees an access behind its end. */
#include "paceline.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
  do { \
    if (!(condition)) return fprintf(stderr, "line %d: %s\\n%s\\n", __LINE__, #condition, paceline_last_error()), 1; \
  } while (0)

/* The limits without `packet_size_bytes`; a packet without `probe` and `kind`; an event without `probe` and `rate_bps`. */
typedef struct { size_t size; uint64_t start_bps, min_bps, max_bps; } OlderLimits;
typedef struct { size_t size; uint64_t sequence, token, size_bytes; } OlderPacket;
typedef struct { size_t size; uint32_t kind; } OlderEvent;
/* Structs with further members. */
typedef struct { PacelineLimits limits; uint64_t further; } NewerLimits;
typedef struct { PacelineSnapshot snapshot; uint64_t further; } NewerSnapshot;

static void *zeros(size_t size) {
  size_t *memory = calloc(1, size);
  if (!memory) abort();
  *memory = size;
  return memory;
}

static int run(const PacelineLimits *limits, uint64_t start_bps) {
  PacelineSender *sender;
  PacelineReceiver *receiver;
  CHECK(paceline_sender_create("googcc", limits, &sender) == PACELINE_OK);
  CHECK(paceline_receiver_create("googcc", limits, 1, 2, &receiver) == PACELINE_OK);
  CHECK(paceline_sender_target(sender) == start_bps);
  PacelineFramePacket frame = {7, 1000};
  CHECK(paceline_sender_push_frame(sender, 0, &frame, 1, 0, 50000, 2000000) == PACELINE_OK);
  OlderPacket *packet = zeros(sizeof *packet);
  CHECK(paceline_sender_poll_packet(sender, 0, (PacelinePacket *)packet) == PACELINE_OK);
  CHECK(packet->size == sizeof *packet && packet->token == 7 && packet->size_bytes == 1000);
  OlderEvent *event = zeros(offsetof(OlderEvent, kind) + sizeof event->kind);
  event->size = offsetof(OlderEvent, kind) + sizeof event->kind;
  CHECK(paceline_sender_poll_event(sender, (PacelineEvent *)event) == PACELINE_OK && event->kind == PACELINE_EVENT_DECISION);
  NewerSnapshot *snapshot = zeros(sizeof *snapshot);
  snapshot->further = 5;
  CHECK(paceline_sender_snapshot(sender, &snapshot->snapshot) == PACELINE_OK);
  CHECK(snapshot->snapshot.size == sizeof *snapshot && snapshot->snapshot.packets_sent == 1 && snapshot->further == 5);
  CHECK(paceline_sender_route_change(sender, 1000, limits) == PACELINE_OK);
  /* A size that was not set. */
  packet->size = 0;
  CHECK(paceline_sender_poll_packet(sender, 1000, (PacelinePacket *)packet) == PACELINE_ERROR_ARGUMENT);
  CHECK(strstr(paceline_last_error(), "set `size` of `packet`"));
  free(packet), free(event), free(snapshot);
  paceline_sender_destroy(sender);
  paceline_receiver_destroy(receiver);
  return 0;
}

int main(void) {
  OlderLimits *older = zeros(sizeof *older);
  older->start_bps = 300000, older->min_bps = 50000, older->max_bps = 2000000;
  NewerLimits *newer = zeros(sizeof *newer);
  newer->limits.start_bps = 400000, newer->limits.max_bps = 2000000, newer->limits.packet_size_bytes = 1000, newer->further = 5;
  int failed = run((PacelineLimits *)older, 300000) || run(&newer->limits, 400000);
  free(older), free(newer);
  return failed;
}
