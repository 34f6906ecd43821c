/* Calls one function again and again: the cost of the border. Arguments: what, number of calls. */
#define _POSIX_C_SOURCE 200809L
#include "paceline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "target";
  long calls = argc > 2 ? atol(argv[2]) : 10000000;
  PacelineLimits limits = {.size = sizeof limits, .start_bps = 300000, .min_bps = 50000, .max_bps = 10000000};
  PacelineSender *sender;
  if (paceline_sender_create("googcc", &limits, &sender) != PACELINE_OK) return 1;
  uint64_t sum = 0;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (strcmp(what, "target") == 0) {
    for (long i = 0; i < calls; i++) sum += paceline_sender_target(sender);
  } else if (strcmp(what, "timeout") == 0) {
    for (long i = 0; i < calls; i++) sum += (uint64_t)paceline_sender_on_timeout(sender, 0);
  } else if (strcmp(what, "sent") == 0) {
    for (long i = 0; i < calls; i++) sum += (uint64_t)paceline_sender_packet_sent(sender, i, 1200, 0, NULL);
  } else {
    return 2;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  printf("%s: %.1f ns per call (%llu)\n", what, ns / (double)calls, (unsigned long long)(sum & 1));
  paceline_sender_destroy(sender);
  return 0;
}
