/* Calls every function with random arguments: valid ones, null, and numbers out of range. Arrays have the exact length that is
   passed, so a sanitizer sees a read or a write behind the end. Prints the number of calls with each status. Fails if a function
   never succeeds, if a timeout stays in the past, or if few packets, probes and reports pass: then the calls reach little of the library.
   Arguments: seed, number of calls. */
#include "paceline.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
static uint64_t below(uint64_t n) { return next() % n; }
static int chance(unsigned percent) { return below(100) < percent; }

/* Numbers that are mostly plausible. */
static uint64_t number(uint64_t plausible) {
  static const uint64_t extreme[] = {0, 1, 255, 65535, 65536, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX, 1ull << 62};
  if (chance(92)) return below(plausible);
  return chance(50) ? extreme[below(sizeof extreme / sizeof *extreme)] : next();
}
/* For elements of arrays: one that is out of range makes the whole call fail. */
static uint64_t element(uint64_t plausible) { return chance(99) ? 1 + below(plausible) : number(plausible); }
static double fraction(void) {
  static const double extreme[] = {-1, 2, 1e300, NAN};
  return chance(90) ? (double)below(1001) / 1000 : extreme[below(4)];
}

static const int64_t LATEST = 1ll << 62, HOUR = 3600000000000;
static int64_t clock_ns;
/* The clock advances, at times by seconds. A few times are earlier ones, an hour ahead of the clock, or invalid. */
static int64_t time_ns(void) {
  static const int64_t invalid[] = {-1, INT64_MIN, (1ll << 62) + 1, INT64_MAX};
  if (chance(1)) return invalid[below(sizeof invalid / sizeof *invalid)];
  if (chance(1)) return (int64_t)below((uint64_t)clock_ns + 1);
  if (below(500) == 0 && clock_ns < LATEST - HOUR) return clock_ns + HOUR;
  clock_ns += below(500) == 0 ? (int64_t)below(10000000000) : (int64_t)below(20000000);
  return clock_ns = clock_ns < LATEST ? clock_ns : LATEST;
}

#define SOMETIMES_NULL(pointer) (chance(97) ? (pointer) : NULL)

/* A size that is mostly the right one. `bytes` is the room that there is. */
static size_t size_of(size_t bytes) { return chance(97) ? bytes : below(bytes + 1); }

static PacelineLimits limits(void) {
  PacelineLimits l = {chance(98) ? sizeof l : number(64), number(2000000), number(300000), number(20000000), chance(80) ? 0 : number(1500)};
  return l;
}
static char *random_name(void) {
  char found[64];
  size_t count = 0;
  while (paceline_controller_name(count, found, sizeof found) == PACELINE_OK) count++;
  if (paceline_controller_name(below(count), found, sizeof found) != PACELINE_OK) abort();
  if (chance(30)) strcpy(found, "googcc"); /* one of few that probe */
  if (chance(3)) found[below(strlen(found))] = (char)next();
  char *name = malloc(strlen(found) + 1);
  strcpy(name, found);
  return name;
}

/* A parameter of the controller that exists, or not, with a value that is mostly in its range. */
static PacelineSetting setting(const char *controller) {
  PacelineSetting s = {"k_u", (double)below(1000)};
  PacelineParameter p;
  size_t count = 0;
  while (paceline_controller_parameter(controller, count, &p) == PACELINE_OK) count++;
  if (count > 0 && paceline_controller_parameter(controller, below(count), &p) == PACELINE_OK && chance(85)) {
    s.name = p.name;
    s.value = chance(98) ? p.default_value : p.max + fraction();
  }
  if (chance(1)) s.name = NULL;
  return s;
}

static PacelineSender *sender;
static PacelineReceiver *receiver;
static size_t sender_signals; /* of the controller of `sender` */
static unsigned long counts[16], functions[32], media, probes, reports, values;

static size_t signal_count(const char *controller, uint8_t half) {
  PacelineSignal s;
  size_t count = 0;
  while (paceline_controller_signal(controller, half, count, &s) == PACELINE_OK) count++;
  return count;
}

static int create(void) {
  char *name = random_name();
  PacelineLimits l = limits();
  PacelineSender *made = NULL;
  size_t count = below(3);
  PacelineSetting *settings = malloc(count * sizeof *settings + 1);
  for (size_t i = 0; i < count; i++) settings[i] = setting(name);
  int status = chance(50) ? paceline_sender_create(SOMETIMES_NULL(name), SOMETIMES_NULL(&l), SOMETIMES_NULL(&made))
                          : paceline_sender_create_with(SOMETIMES_NULL(name), SOMETIMES_NULL(&l), SOMETIMES_NULL(settings),
                                                        count, SOMETIMES_NULL(&made));
  if (status == PACELINE_OK) {
    paceline_sender_destroy(sender);
    sender = made;
    sender_signals = signal_count(name, PACELINE_HALF_SEND);
    if (chance(80) && paceline_sender_enable_signals(sender) != PACELINE_OK) abort();
  }
  PacelineReceiver *other = NULL;
  uint32_t ssrc = chance(80) ? PACELINE_KIND_MEDIA : (uint32_t)next();
  int result = chance(50)
                   ? paceline_receiver_create(SOMETIMES_NULL(name), SOMETIMES_NULL(&l), (uint32_t)next(), ssrc, SOMETIMES_NULL(&other))
                   : paceline_receiver_create_with(SOMETIMES_NULL(name), SOMETIMES_NULL(&l), (uint32_t)next(), ssrc,
                                                   SOMETIMES_NULL(settings), count, SOMETIMES_NULL(&other));
  free(settings);
  if (result == PACELINE_OK) {
    paceline_receiver_destroy(receiver);
    receiver = other;
  }
  free(name);
  return status;
}

static int feedback(PacelineSender *to) {
  PacelineSnapshot s = {.size = sizeof s};
  paceline_sender_snapshot(to, &s);
  size_t count = below(40);
  PacelineArrival *arrivals = malloc(count * sizeof *arrivals + 1);
  for (size_t i = 0; i < count; i++)
    arrivals[i] = (PacelineArrival){s.packets_sent - below(s.packets_sent + 2), (int64_t)element((uint64_t)clock_ns + 1),
                                    chance(90), (uint8_t)(chance(99) ? below(4) : next())};
  int status = paceline_sender_feedback(to, time_ns(), SOMETIMES_NULL(arrivals), chance(99) ? count : 0);
  free(arrivals);
  return status;
}

static int frame(PacelineSender *to) {
  size_t count = below(12);
  PacelineFramePacket *packets = malloc(count * sizeof *packets + 1);
  for (size_t i = 0; i < count; i++) packets[i] = (PacelineFramePacket){next(), element(1500)};
  int status = paceline_sender_push_frame(to, time_ns(), SOMETIMES_NULL(packets), count, (uint8_t)next(), number(100000),
                                          100000 + number(9000000));
  free(packets);
  return status;
}

/* The receiver's RTCP, changed at times, or random bytes. */
static int rtcp(PacelineSender *to) {
  size_t length = 0, capacity = chance(95) ? 1200 : below(1200);
  uint8_t *written = malloc(capacity);
  int status = paceline_receiver_poll_rtcp(receiver, time_ns(), SOMETIMES_NULL(written), capacity, SOMETIMES_NULL(&length));
  reports += status == PACELINE_OK;
  if (status != PACELINE_OK) length = below(200);
  uint8_t *bytes = malloc(length);
  if (status == PACELINE_OK) {
    memcpy(bytes, written, length);
  } else {
    for (size_t i = 0; i < length; i++) bytes[i] = (uint8_t)next();
    if (length > 2) bytes[0] = 0x80 | (bytes[0] & 31), bytes[1] = (uint8_t)(200 + below(8)), bytes[2] = 0;
  }
  free(written);
  if (length > 0 && chance(30)) bytes[below(length)] ^= (uint8_t)next();
  int result = paceline_sender_rtcp(to, time_ns(), SOMETIMES_NULL(bytes), length);
  free(bytes);
  return result;
}

static int arrival(void) {
  static uint16_t sequence;
  PacelineReceivedPacket p = {.size = size_of(sizeof p), .size_bytes = number(1500), .transport_sequence = (int32_t)number(65536),
                              .abs_send_time = (int32_t)number(1 << 24), .rtp_timestamp = (uint32_t)next(),
                              .ssrc = chance(90) ? 0 : (uint32_t)below(20), .rtp_sequence = (uint16_t)next(),
                              .stream = (uint8_t)below(3), .audio = (uint8_t)below(2), .kind = (uint8_t)number(4),
                              .ecn = (uint8_t)number(4)};
  if (chance(80)) p.transport_sequence = p.rtp_sequence = sequence++;
  return paceline_receiver_packet(SOMETIMES_NULL(receiver), time_ns(), SOMETIMES_NULL(&p));
}

/* Polls until nothing may leave, as a program does, and again at the times that follow soon. Gives up at any time. */
static int poll(PacelineSender *to) {
  static uint16_t number_of[20];
  int64_t now = time_ns();
  int status = PACELINE_NOTHING;
  for (unsigned rounds = (unsigned)below(50); rounds > 0; rounds--) {
    PacelinePacket packet = {.size = sizeof packet};
    while ((status = paceline_sender_poll_packet(to, now, SOMETIMES_NULL(&packet))) == PACELINE_OK) {
      media += packet.kind == PACELINE_KIND_MEDIA, probes += packet.probe != PACELINE_NO_PROBE;
      uint32_t ssrc = (uint32_t)(chance(90) ? packet.kind : below(20));
      if (paceline_sender_rtp_number(to, packet.sequence, ssrc, number_of[ssrc]++) != PACELINE_OK) abort();
      if (chance(2)) return status;
    }
    int64_t due = paceline_sender_next_timeout(to);
    if (status < 0 || due > clock_ns + 20000000) return status;
    now = clock_ns = due > clock_ns ? due : clock_ns;
  }
  return status;
}

static int name_of(void) {
  size_t capacity = chance(90) ? 64 : below(64);
  char *name = malloc(capacity);
  int status = paceline_controller_name(number(40), SOMETIMES_NULL(name), capacity);
  free(name);
  return status;
}

/* The lists of parameters, signals and states: every text is read to its end. */
static int listed(void) {
  char *controller = random_name();
  uint8_t half = (uint8_t)(chance(95) ? below(2) : next());
  size_t index = number(20);
  PacelineParameter p = {0};
  PacelineSignal s = {0};
  const char *state = NULL;
  size_t length = 0;
  int status = paceline_controller_parameter(SOMETIMES_NULL(controller), number(80), SOMETIMES_NULL(&p));
  if (status == PACELINE_OK && p.name) length += strlen(p.name) + strlen(p.description) + (p.unit ? strlen(p.unit) : 0);
  if (status >= 0) status = paceline_controller_signal(SOMETIMES_NULL(controller), half, index, SOMETIMES_NULL(&s));
  if (status == PACELINE_OK && s.name) length += strlen(s.name) + (s.unit ? strlen(s.unit) : 0);
  if (status >= 0) status = paceline_controller_signal_state(SOMETIMES_NULL(controller), half, index, number(4), SOMETIMES_NULL(&state));
  if (status == PACELINE_OK && state) length += strlen(state);
  free(controller);
  return length == SIZE_MAX ? PACELINE_ERROR_DEFECT : status;
}

/* The values of an array that is long enough, or too short. */
static int signals_of(PacelineSender *to) {
  size_t capacity = chance(90) ? sender_signals : below(sender_signals + 1);
  double *array = malloc(capacity * sizeof *array + 1);
  int status = paceline_sender_signals(to, SOMETIMES_NULL(array), capacity);
  for (size_t i = 0; status == PACELINE_OK && i < sender_signals; i++) values += !isnan(array[i]);
  free(array);
  if (status != PACELINE_OK) return status;
  double received[256];
  return paceline_receiver_signals(SOMETIMES_NULL(receiver), SOMETIMES_NULL(received), number(256));
}

/* The result of a case that called nothing. */
enum { NOT_CALLED = 2 };

/* Once all timeouts are handled and all packets have left, the next timeout is in the future. */
static int waits(void) {
  for (int i = 0; i < 100000; i++) {
    PacelinePacket packet = {.size = sizeof packet};
    int status = paceline_sender_on_timeout(sender, clock_ns);
    while (status == PACELINE_OK) status = paceline_sender_poll_packet(sender, clock_ns, &packet);
    if (status < 0) return status;
    if (paceline_sender_next_timeout(sender) > clock_ns) return PACELINE_OK;
  }
  return PACELINE_ERROR_DEFECT;
}

static int call(unsigned which) {
  PacelineSender *to = SOMETIMES_NULL(sender);
  uint64_t sequence;
  PacelineSnapshot snapshot = {.size = size_of(sizeof snapshot)};
  PacelineEvent event = {.size = size_of(sizeof event)};
  PacelineDecision decision = {.size = size_of(sizeof decision)};
  PacelineProbe probe = {.size = size_of(sizeof probe)};
  PacelineLimits l;
  switch (which) {
    case 0: return chance(10) ? create() : NOT_CALLED;
    case 1: return paceline_sender_packet_sent(to, time_ns(), number(1500), (uint8_t)number(4), SOMETIMES_NULL(&sequence));
    case 2: return feedback(to);
    case 3: return frame(to);
    case 4: return rtcp(to);
    case 5: return arrival();
    case 6: return paceline_sender_rtt(to, time_ns(), (int64_t)number(300000000));
    case 7: return paceline_sender_loss(to, time_ns(), fraction());
    case 8: return paceline_sender_remb(to, time_ns(), number(5000000));
    case 9: return chance(10) ? paceline_sender_bounds(to, time_ns(), number(300000), number(5000000)) : NOT_CALLED;
    case 10: return l = limits(), chance(3) ? paceline_sender_route_change(to, time_ns(), SOMETIMES_NULL(&l)) : NOT_CALLED;
    case 11: return chance(10) ? paceline_sender_availability(to, time_ns(), chance(80)) : NOT_CALLED;
    case 12: return paceline_sender_on_timeout(to, time_ns());
    case 13: return paceline_receiver_on_timeout(SOMETIMES_NULL(receiver), time_ns());
    case 14: return poll(to);
    case 15: return paceline_sender_snapshot(to, SOMETIMES_NULL(&snapshot));
    case 16: return name_of();
    case 17: {
      PacelineSender *copy = NULL;
      int status = paceline_sender_copy(to, SOMETIMES_NULL(&copy));
      if (status == PACELINE_OK) paceline_sender_destroy(sender), sender = copy;
      return status;
    }
    case 18: return waits();
    case 19: {
      PacelineDecision s = {.size = sizeof s};
      if (!to || paceline_sender_decision(to, &s) < 0) return paceline_sender_target(to) == 0 ? NOT_CALLED : PACELINE_ERROR_DEFECT;
      return paceline_sender_target(to) == s.target_bps && paceline_sender_pacing(to) == s.pacing_bps
                 ? PACELINE_OK : PACELINE_ERROR_DEFECT;
    }
    case 20: /* After a step of the clock by an hour it may be before 0. */
      return paceline_receiver_next_timeout(receiver) > -25 * HOUR && paceline_receiver_next_timeout(NULL) == PACELINE_NEVER
                 ? PACELINE_OK : PACELINE_ERROR_DEFECT;
    case 21: return paceline_sender_rtp_number(to, number(1000), (uint32_t)below(20), (uint16_t)number(65536));
    case 22: return listed();
    case 23: return signals_of(to);
    case 24: return chance(50) ? paceline_sender_enable_signals(to) : paceline_receiver_enable_signals(SOMETIMES_NULL(receiver));
    case 25: return paceline_sender_poll_event(to, SOMETIMES_NULL(&event));
    case 26: return paceline_sender_decision(to, SOMETIMES_NULL(&decision));
    case 27: return chance(10) ? paceline_sender_poll_probe(to, SOMETIMES_NULL(&probe)) : NOT_CALLED;
    case 28: return chance(10) ? paceline_sender_encoder(to, time_ns(), number(100000), 100000 + number(9000000), number(20000)) : NOT_CALLED;
    case 29: return paceline_sender_probe_sent(to, time_ns(), number(1500), (uint8_t)number(4), (int32_t)number(9) - 1, SOMETIMES_NULL(&sequence));
    case 30: return paceline_sender_poll_discarded(to, SOMETIMES_NULL(&sequence));
    default: return (strlen(paceline_last_error()) + strlen(paceline_version())) == 0;
  }
}

/* The number of cases of `call`. */
enum { FUNCTIONS = 32 };

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  long calls = argc > 2 ? atol(argv[2]) : 100000;
  while (!sender || !receiver) create();
  for (long i = 0; i < calls; i++) {
    unsigned which = (unsigned)below(FUNCTIONS);
    /* The last calls are at the end of the range of times. */
    if (i == calls - calls / 50) clock_ns = LATEST - 1000000000;
    int status = call(which);
    if (status < -8 || status > NOT_CALLED || status == PACELINE_ERROR_DEFECT) {
      fprintf(stderr, "call %ld, function %u: status %d: %s\n", i, which, status, paceline_last_error());
      return 1;
    }
    counts[status + 8]++, functions[which] += status == PACELINE_OK || status == PACELINE_NOTHING;
  }
  for (int status = -8; status <= PACELINE_NOTHING; status++) printf("status %2d: %lu\n", status, counts[status + 8]);
  for (unsigned which = 0; which < FUNCTIONS; which++)
    if (functions[which] == 0) return fprintf(stderr, "function %u never succeeded\n", which), 1;
  printf("%lu media packets, %lu packets of probes, %lu reports, %lu values of signals\n", media, probes, reports, values);
  if (media < (unsigned long)calls / 40 || probes < (unsigned long)calls / 2000 || reports < (unsigned long)calls / 200 ||
      values < (unsigned long)calls / 40)
    return fprintf(stderr, "too few packets, packets of probes, reports or values of signals\n"), 1;
  paceline_sender_destroy(sender);
  paceline_receiver_destroy(receiver);
  paceline_sender_destroy(NULL);
  return 0;
}
