/* A controller in C: it decreases at 10 % loss and else increases by 5 % per second, as ../exec/aimd.py does. */
#include "paceline.h"
#include <stdlib.h>

/* `last_ns` is the time of the last feedback, and negative before the first. */
typedef struct { double rate, min, max, loss; int64_t last_ns; } State;

static void *create(const PacelineLimits *limits, const double *parameters, size_t count) {
  (void)parameters, (void)count;
  State *s = calloc(1, sizeof *s);
  if (s) *s = (State){.rate = limits->start_bps, .min = limits->min_bps, .max = limits->max_bps, .last_ns = -1};
  return s;
}
static int on_bounds(void *state, int64_t now_ns, uint64_t min_bps, uint64_t max_bps) {
  (void)now_ns;
  ((State *)state)->min = min_bps, ((State *)state)->max = max_bps;
  return 0;
}
static int on_feedback(void *state, int64_t now_ns, const PacelineFeedback *feedback) {
  State *s = state;
  size_t lost = 0, count = feedback->packet_count;
  if (count == 0) return 0;
  for (size_t i = 0; i < count; i++) lost += !feedback->packets[i].arrived;
  s->loss = (double)lost / count;
  double seconds = s->last_ns < 0 ? 0 : (now_ns - s->last_ns) / 1e9;
  s->rate *= s->loss > 0.1 ? 1 - s->loss / 2 : 1 + 0.05 * seconds;
  s->last_ns = now_ns;
  return 0;
}
static int decide(void *state, PacelineDecision *decision) {
  State *s = state;
  s->rate = s->rate < s->min ? s->min : s->rate > s->max ? s->max : s->rate;
  decision->target_bps = s->rate + 0.5;
  return 0;
}
static int read_signals(void *state, double *values, size_t count) {
  if (count == 1) values[0] = ((State *)state)->loss;
  return 0;
}

const PacelineControllerV1 *paceline_controller_v1(void) {
  static const PacelineSignal signals[] = {{.name = "loss"}};
  static const PacelineControllerV1 table = {
      .version = PACELINE_CONTROLLER_VERSION, .size = sizeof(PacelineControllerV1), .summary = "AIMD in C",
      .signals = signals, .signal_count = 1, .create = create, .destroy = free, .on_bounds = on_bounds,
      .on_feedback = on_feedback, .decide = decide, .read_signals = read_signals};
  return &table;
}
