/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Controllers of congestion for real-time media. docs/how-to/c.md is the guide.

   Every function checks its pointers, lengths and ranges, and returns a status or a value. None unwinds, does I/O or reads a
   clock. Times are ns, rates bit/s, sizes bytes with IP and UDP headers. One thread at a time may use an object.

   A struct with `size` may grow at its end in a later version. The side that allocates it sets `size` to its sizeof; the other side
   takes any size. What is behind `size` has its default when it is read, 0 unless another is stated, and is not written. What only the
   caller's header has is ignored, and stays as it is. Structs without `size` do not change. One that only
   functions of the table of a controller use may change with the version of that table.

   Made by `cargo xtask c`; do not edit. */

#ifndef PACELINE_H
#define PACELINE_H

#include <stddef.h>
#include <stdint.h>

// The version of `PacelineControllerV1`. It changes with the members that a table had, and with the structs without a `size` that its
// functions take; a table to which functions are added keeps its version.
#define PACELINE_CONTROLLER_VERSION 3

// A time that never comes: no timeout, no limit.
#define PACELINE_NEVER INT64_MAX

// No probe cluster, in `probe`.
#define PACELINE_NO_PROBE -1

// The first transmission of media, in `kind`.
#define PACELINE_KIND_MEDIA 0

// A retransmission.
#define PACELINE_KIND_RETRANSMISSION 1

// Forward error correction.
#define PACELINE_KIND_FEC 2

// Padding alone.
#define PACELINE_KIND_PADDING 3

// The ECN field of a packet that is not ECN-capable.
#define PACELINE_ECN_NOT_ECT 0

// The ECN codepoint ECT(1), for L4S.
#define PACELINE_ECN_ECT1 1

// The ECN codepoint ECT(0).
#define PACELINE_ECN_ECT0 2

// The ECN codepoint CE, congestion experienced.
#define PACELINE_ECN_CE 3

// The feedback does not contain the ECN field.
#define PACELINE_ECN_UNKNOWN 255

// There is no bound on bytes in flight, in `window`.
#define PACELINE_WINDOW_NONE 0

// A bound on the bytes that are neither acknowledged nor lost.
#define PACELINE_WINDOW_OUTSTANDING 1

// A bound on the bytes sent after the highest acknowledged packet (RFC 8298).
#define PACELINE_WINDOW_AFTER_HIGHEST 2

// Transport-wide feedback, without ECN, in `feedback`.
#define PACELINE_FEEDBACK_TRANSPORT_WIDE 0

// Feedback of RFC 8888, with ECN.
#define PACELINE_FEEDBACK_RFC8888 1

// No per-packet feedback.
#define PACELINE_FEEDBACK_NONE 2

// The receiver estimated maximum bitrate, in `kind` of a message.
#define PACELINE_MESSAGE_REMB 1

// The report of a NADA receiver.
#define PACELINE_MESSAGE_NADA 3

// An application-defined message (RFC 3550, section 6.7).
#define PACELINE_MESSAGE_APP 4

// The version of this header. `paceline_version` returns that of the library.
#define PACELINE_VERSION_MAJOR 0

// The minor version. Before 1.0 another one may change the interface, so it is a part of the name of the shared library.
#define PACELINE_VERSION_MINOR 1

// The patch version.
#define PACELINE_VERSION_PATCH 0

// The half at the sender, in `half`.
#define PACELINE_HALF_SEND 0

// The half at the receiver.
#define PACELINE_HALF_RECEIVE 1

// Reports on each packet: `paceline_sender_feedback`, or transport-wide or RFC 8888 feedback in `paceline_sender_rtcp`.
#define PACELINE_NEEDS_FEEDBACK 1

// The ECN field of each packet in these reports.
#define PACELINE_NEEDS_ECN 2

// REMB, of a receiver of Paceline or of another stack.
#define PACELINE_NEEDS_REMB 4

// Messages that only a receiver of Paceline sends (`paceline_receiver_create`), in `paceline_sender_rtcp`.
#define PACELINE_NEEDS_RECEIVER 8

// The controller changed its decision: read it with `paceline_sender_decision`.
#define PACELINE_EVENT_DECISION 1

// A frame was dropped, or removed from the queue.
#define PACELINE_EVENT_FRAME_DROPPED 2

// The encoder should make a key frame.
#define PACELINE_EVENT_KEY_FRAME_REQUESTED 3

// No feedback has arrived for 3 s, so that the rate falls.
#define PACELINE_EVENT_FEEDBACK_LOST 4

// Feedback arrives again.
#define PACELINE_EVENT_FEEDBACK_RESUMED 5

// A time was more than 100 ms before an earlier one. From then on times are shifted, so that the controller sees none that goes back.
#define PACELINE_EVENT_CLOCK_STEPPED_BACK 6

// The controller failed, and the last decision stays in force. The controllers of this library do not fail.
#define PACELINE_EVENT_CONTROLLER_FAILED 7

// A probe cluster arrived: `probe` and `rate_bps`. Further packets of it may refine the rate.
#define PACELINE_EVENT_PROBE_RESULT 8

// The rate of the encoder changed: `rate_bps`.
#define PACELINE_EVENT_STREAM_RATES 9

// A receiver. Opaque.
typedef struct PacelineReceiver PacelineReceiver;

// A sender. Opaque.
typedef struct PacelineSender PacelineSender;

// The result of a function: `PACELINE_OK`, `PACELINE_NOTHING`, or an error, which is negative.
typedef int32_t PacelineStatus;

// A number of a controller that `--set flow.ID.config.NAME=VALUE` changes.
typedef struct PacelineParameter {
  // The name; UTF-8.
  const char *name;
  // The unit; null for pure numbers.
  const char *unit;
  // One line of description, or null.
  const char *description;
  // The value if none is set.
  double default_value;
  // The lowest value.
  double min;
  // The highest value.
  double max;
} PacelineParameter;

// A variable of a controller over time. Plots and result tables show it.
typedef struct PacelineSignal {
  // The name; UTF-8.
  const char *name;
  // The unit; null for pure numbers.
  const char *unit;
} PacelineSignal;

// Limits of a flow.
typedef struct PacelineLimits {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // The first target, bit/s; above 0.
  uint64_t start_bps;
  // The lowest target, bit/s; at most `start_bps` and `max_bps`.
  uint64_t min_bps;
  // The highest rate that the sources can use, bit/s; above 0.
  uint64_t max_bps;
  // The size of the largest RTP packet, without IP and UDP headers; 0 stands for 1200.
  uint64_t packet_size_bytes;
} PacelineLimits;

// A parameter of a controller and the value that it gets.
typedef struct PacelineSetting {
  // The name; `paceline_controller_parameter` lists the names. It ends with a zero.
  const char *name;
  // The value, in the unit and the range of the parameter.
  double value;
} PacelineSetting;

// A packet as it arrives.
typedef struct PacelineReceivedPacket {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // The size on the network, 1 to 65,535 bytes.
  uint64_t size_bytes;
  // The transport-wide sequence number; negative if the packet has none. RFC 8888 feedback does without it.
  int32_t transport_sequence;
  // The 24 bits of the abs-send-time extension; negative if the packet has none. A controller that estimates at the receiver
  // ignores a packet without it, or measures no delay.
  int32_t abs_send_time;
  // The RTP timestamp, which the packets of a frame share.
  uint32_t rtp_timestamp;
  // The SSRC, which RFC 8888 feedback names; 0 for the `media_ssrc` of the receiver.
  uint32_t ssrc;
  // The RTP sequence number.
  uint16_t rtp_sequence;
  // The stream, a number of the caller's choice.
  uint8_t stream;
  // 1 for audio, 0 for video.
  uint8_t audio;
  // The purpose: `PACELINE_KIND_…`.
  uint8_t kind;
  // The ECN field: `PACELINE_ECN_…`.
  uint8_t ecn;
} PacelineReceivedPacket;

// A probe cluster to send.
typedef struct PacelineProbe {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // The rate of its packets; above 0.
  uint64_t rate_bps;
  // The cluster ends when this much time's worth of bytes at its rate has left.
  uint64_t duration_ns;
  // A number of the controller's choice. The packets of the cluster have it.
  uint16_t id;
  // The least number of packets.
  uint16_t packets;
} PacelineProbe;

// An event of a sender. It has no stream, because a sender has one.
typedef struct PacelineEvent {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // `PACELINE_EVENT_…`.
  uint32_t kind;
  // The cluster of the result of a probe, or `PACELINE_NO_PROBE`.
  int32_t probe;
  // The rate of the result of a probe, and the rate of the encoder with new rates of streams; else 0.
  uint64_t rate_bps;
} PacelineEvent;

// A packet of a frame that is to be sent.
typedef struct PacelineFramePacket {
  // A number of the caller's choice. `paceline_sender_poll_packet` returns it.
  uint64_t token;
  // The size on the network, 1 to 65,535 bytes.
  uint64_t size_bytes;
} PacelineFramePacket;

// A packet to send now.
typedef struct PacelinePacket {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // The number within the flow, from 0. Write its low 16 bits into the transport-wide sequence number.
  uint64_t sequence;
  // The token of the frame's packet; 0 for padding.
  uint64_t token;
  // The size on the network.
  uint64_t size_bytes;
  // The probe cluster that the packet belongs to, or `PACELINE_NO_PROBE`.
  int32_t probe;
  // `PACELINE_KIND_MEDIA`, or `PACELINE_KIND_PADDING` for a packet that the caller makes up.
  uint8_t kind;
} PacelinePacket;

// The report on one packet, from feedback of any format.
typedef struct PacelineArrival {
  // The number within the flow.
  uint64_t sequence;
  // The arrival on the receiver's clock, 0 to 2^62; without meaning if the packet is lost.
  int64_t arrival_ns;
  // 1 if the packet arrived, 0 if it is lost.
  uint8_t arrived;
  // The ECN field on arrival: `PACELINE_ECN_…`.
  uint8_t ecn;
} PacelineArrival;

// The instructions for encoder and pacer.
typedef struct PacelineDecision {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // The sending rate of the flow.
  uint64_t target_bps;
  // A rate up to the target that changes more slowly; from a controller, 0 stands for the target.
  uint64_t stable_target_bps;
  // The rate at which the pacer empties its queue; from a controller, 0 stands for the target.
  uint64_t pacing_bps;
  // Padding should fill what media leaves free up to this rate. The laboratory does so, and so does
  // `paceline_sender_poll_packet`; a program with a pacer of its own makes these packets itself.
  uint64_t padding_bps;
  // If above 0, packets leave in bursts of this length.
  uint64_t burst_ns;
  // If above 0, packets leave at multiples of this time only.
  uint64_t tick_ns;
  // The bound on bytes in flight, if `window` is not `PACELINE_WINDOW_NONE`.
  uint64_t window_bytes;
  // The longest wait of a frame in the pacer's queue; `PACELINE_NEVER` for the limit of the flow. What waits longer is
  // discarded.
  int64_t queue_max_ns;
  // The time of the next timeout; `PACELINE_NEVER` for none. A time in the past is due at once.
  int64_t timeout_ns;
  // `PACELINE_WINDOW_…`.
  uint8_t window;
  // The ECN codepoint of RTP packets: `PACELINE_ECN_…`, not CE.
  uint8_t ecn;
} PacelineDecision;

// The state of a sender.
typedef struct PacelineSnapshot {
  // The size of the struct in the caller's header: `sizeof`.
  size_t size;
  // The latest time of a call.
  int64_t now_ns;
  // The bytes that are neither acknowledged nor lost.
  uint64_t outstanding_bytes;
  // The bytes sent after the highest acknowledged packet.
  uint64_t after_highest_bytes;
  // The bytes in the pacer's queue.
  uint64_t queued_bytes;
  // The smoothed round-trip time of `paceline_sender_rtt`; 0 without any.
  int64_t rtt_ns;
  // The packets that left.
  uint64_t packets_sent;
  // The packets that were reported as arrived.
  uint64_t packets_arrived;
  // The packets that were reported lost, with those that arrived after all.
  uint64_t packets_lost;
} PacelineSnapshot;

// A packet that left the pacer.
typedef struct PacelineSentPacket {
  // The number within the flow, from 0. Its low 16 bits are the transport-wide sequence number.
  uint64_t sequence;
  // The size on the network.
  uint64_t size_bytes;
  // The bytes that were neither acknowledged nor lost before this packet left; negative without per-packet feedback.
  int64_t in_flight_bytes;
  // The probe cluster that the packet belongs to, or `PACELINE_NO_PROBE`.
  int32_t probe;
  // The stream.
  uint8_t stream;
  // The purpose: `PACELINE_KIND_…`.
  uint8_t kind;
} PacelineSentPacket;

// The receiver's report on one packet, joined with the sender's record of it.
typedef struct PacelinePacketReport {
  // The number within the flow.
  uint64_t sequence;
  // The time at which the packet left the pacer.
  int64_t sent_ns;
  // The time at which it arrived, on the receiver's clock, whose origin is unknown; without meaning if it did not arrive.
  int64_t arrival_ns;
  // The size on the network.
  uint64_t size_bytes;
  // The bytes that were neither acknowledged nor lost before this packet left.
  uint64_t in_flight_bytes;
  // The probe cluster that the packet belongs to, or `PACELINE_NO_PROBE`.
  int32_t probe;
  // The stream.
  uint8_t stream;
  // The purpose: `PACELINE_KIND_…`.
  uint8_t kind;
  // 1 if the packet arrived, 0 if it is reported lost.
  uint8_t arrived;
  // The ECN field on arrival: `PACELINE_ECN_…`.
  uint8_t ecn;
} PacelinePacketReport;

// The round-trip time, without the time for which the receiver held the report.
typedef struct PacelineRoundTrip {
  // The last sample.
  int64_t last_ns;
  // The smoothed time: each sample has a weight of 1/8.
  int64_t smoothed_ns;
} PacelineRoundTrip;

// One per-packet feedback message.
typedef struct PacelineFeedback {
  // The packets whose state changed, by sequence number. Valid during the call.
  const struct PacelinePacketReport *packets;
  // The number of packets.
  size_t packet_count;
  // The bytes that are neither acknowledged nor lost.
  uint64_t outstanding_bytes;
  // The bytes sent after the highest acknowledged packet.
  uint64_t after_highest_bytes;
  // The round-trip time, if `has_rtt`.
  struct PacelineRoundTrip rtt;
  // 1 if the format contains the round-trip time.
  uint8_t has_rtt;
} PacelineFeedback;

// A message of the receive half.
typedef struct PacelineMessage {
  // `PACELINE_MESSAGE_…`. It decides which of the other fields have a meaning.
  uint32_t kind;
  // NADA: 1 in accelerated ramp-up, 0 in gradual update.
  uint8_t ramp_up;
  // APP: the subtype.
  uint8_t subtype;
  // APP: the name of four ASCII characters, without a zero at the end.
  uint8_t name[4];
  // REMB: the rate. NADA: the incoming rate.
  uint64_t rate_bps;
  // NADA: the congestion signal `x_curr`.
  int64_t signal_ns;
  // APP: the number of words.
  uint32_t word_count;
  // APP: the data.
  uint32_t words[16];
} PacelineMessage;

// The state of a stream.
typedef struct PacelineStream {
  // The size of its packets in the pacer's queue.
  uint64_t queued_bytes;
  // The rate that was allocated to the stream and that its source did not use.
  uint64_t unused_bps;
  // The weight when streams share the target.
  double priority;
  // The lowest rate of the source.
  uint64_t min_bps;
  // The highest rate of the source.
  uint64_t max_bps;
  // The stream.
  uint8_t stream;
} PacelineStream;

// A frame whose packets are in the pacer's queue.
typedef struct PacelineFrame {
  // The size of its packets on the network.
  uint64_t size_bytes;
  // The number of its packets.
  uint32_t packets;
  // The stream.
  uint8_t stream;
  // 1 if it can be decoded without earlier frames.
  uint8_t key;
} PacelineFrame;

// A controller in a shared library. The library exports
// `const PacelineControllerV1 *paceline_controller_v1(void);`, which returns a table that lives as long as the process.
//
// Set the members by name and leave the others zero: a null function handles nothing, and so does one behind `size`. Functions that the
// laboratory does not know are not called. Only `version`, `size`, `create`,
// `destroy` and `decide` are needed. A handler returns 0, or another number to end the run with an error. After each
// handler the laboratory calls `decide`. Times never decrease. Runs on several threads have a state each, which one thread at
// a time uses; anything that states share needs protection. Equal calls must cause equal decisions: read no clock.
typedef struct PacelineControllerV1 {
  // `PACELINE_CONTROLLER_VERSION`.
  uint32_t version;
  // `sizeof(PacelineControllerV1)`.
  uint32_t size;
  // One line of description, or null.
  const char *summary;
  // The document that the controller follows, or null.
  const char *source;
  // A controller of Paceline whose receive half runs at the receiver, or null. With `gcc-2016`, `on_message` gets REMBs.
  const char *receive_of;
  // The format of per-packet feedback: `PACELINE_FEEDBACK_…`.
  uint32_t feedback;
  // The time between two feedback messages; 0 stands for 50 ms.
  uint32_t feedback_interval_ms;
  // The longest time between two feedback messages; 0 stands for 250 ms.
  uint32_t feedback_longest_ms;
  // 1 if the laboratory must not lower the rate when feedback stops, because the controller does so itself.
  uint32_t unguarded;
  // The signals, up to 256, or null.
  const struct PacelineSignal *signals;
  // The number of signals.
  size_t signal_count;
  // The parameters, or null.
  const struct PacelineParameter *parameters;
  // The number of parameters.
  size_t parameter_count;
  // Creates the state of a flow. Receives the value of each parameter in the order of the table. Null is an error.
  void *(*create)(const struct PacelineLimits *limits,
                  const double *parameters,
                  size_t parameter_count);
  // Frees a state.
  void (*destroy)(void *state);
  // Copies a state. Null: flows of this controller cannot be copied.
  void *(*copy)(const void *state);
  // Handles a packet that left the pacer.
  int32_t (*on_packet_sent)(void *state, int64_t now_ns, const struct PacelineSentPacket *packet);
  // Handles per-packet feedback.
  int32_t (*on_feedback)(void *state, int64_t now_ns, const struct PacelineFeedback *feedback);
  // Handles a sample of the round-trip time.
  int32_t (*on_rtt)(void *state, int64_t now_ns, const struct PacelineRoundTrip *rtt);
  // Handles the fraction of packets lost in receiver reports, 0 to 1, over at least 20 packets.
  int32_t (*on_report)(void *state, int64_t now_ns, double fraction_lost);
  // Handles a message of the receive half.
  int32_t (*on_message)(void *state, int64_t now_ns, const struct PacelineMessage *message);
  // Handles proof that packets arrive.
  int32_t (*on_liveness)(void *state, int64_t now_ns);
  // Handles the state of a stream, before each of its frames.
  int32_t (*on_stream)(void *state, int64_t now_ns, const struct PacelineStream *stream);
  // Handles a frame that was queued in the pacer.
  int32_t (*on_frame)(void *state, int64_t now_ns, const struct PacelineFrame *frame);
  // Handles that the application began (1) or ceased (0) to limit the flow.
  int32_t (*on_application_limit)(void *state, int64_t now_ns, uint8_t limited);
  // Handles the end of a stream.
  int32_t (*on_stream_removed)(void *state, int64_t now_ns, uint8_t stream);
  // Handles new limits of the target.
  int32_t (*on_bounds)(void *state, int64_t now_ns, uint64_t min_bps, uint64_t max_bps);
  // Handles a change of the network route: what was measured says nothing about the new path.
  int32_t (*on_route)(void *state, int64_t now_ns, const struct PacelineLimits *limits);
  // Handles the loss (0) and the return (1) of the network.
  int32_t (*on_availability)(void *state, int64_t now_ns, uint8_t available);
  // Handles the time `timeout_ns` of the decision, which may have passed a while ago. The next one must be later than that time,
  // not than `now_ns`.
  int32_t (*on_timeout)(void *state, int64_t now_ns);
  // Writes the decision. It arrives with the start rate as the target, without timeout, window, padding and ECN.
  int32_t (*decide)(void *state, struct PacelineDecision *decision);
  // Writes the next probe cluster to send and returns 1, or returns 0. Called until it returns 0, up to 64 times.
  int32_t (*poll_probe)(void *state, int64_t now_ns, struct PacelineProbe *probe);
  // Writes the rate of a stream and returns 1, or returns 0 if the laboratory divides the target.
  int32_t (*stream_rate)(void *state, uint8_t stream, uint64_t *rate_bps);
  // Writes the value of each signal in the order of the table. They arrive as NaN, which stands for no value.
  int32_t (*read_signals)(void *state, double *values, size_t signal_count);
} PacelineControllerV1;

// Done.
#define PACELINE_OK 0

// There is nothing to do or to return now. Not an error.
#define PACELINE_NOTHING 1

// A pointer is null that must not be.
#define PACELINE_ERROR_NULL -1

// A value is out of range.
#define PACELINE_ERROR_ARGUMENT -2

// There is no controller of this name, or it has no such half.
#define PACELINE_ERROR_CONTROLLER -3

// The pacer takes no frame now, because its queue is full or there is no network: drop the frame.
#define PACELINE_ERROR_FULL -4

// The buffer is too small.
#define PACELINE_ERROR_BUFFER -5

// The bytes are not valid RTCP.
#define PACELINE_ERROR_RTCP -6

// A defect of the library. The object answers every later call with this status; destroy it.
#define PACELINE_ERROR_DEFECT -7

// The controller has no parameter of this name.
#define PACELINE_ERROR_PARAMETER -8

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the text of the last error on this thread. It is valid until the next error on this thread.
const char *paceline_last_error(void);

// Returns the version of the library, as in `0.1.0`.
const char *paceline_version(void);

// Copies the name of the controller with this index into `buffer`, with a zero at the end. Returns `PACELINE_NOTHING` after
// the last one, and `PACELINE_ERROR_BUFFER` if the name does not fit; 64 bytes are enough for every name.
//
// Pointers:
// `buffer` is null or has room for `capacity` bytes.
PacelineStatus paceline_controller_name(size_t index,
                                        char *buffer,
                                        size_t capacity);

// Writes what the controller `controller` needs: the sum of `PACELINE_NEEDS_…`. A controller that does not get it stays at its start
// rate. Receiver reports (`paceline_sender_loss`, `paceline_sender_rtt`) and `paceline_sender_on_timeout` are useful for all.
//
// Pointers:
// Each pointer is null or valid; `controller` ends with a zero.
PacelineStatus paceline_controller_needs(const char *controller,
                                         uint32_t *needs);

// Writes the parameter with this index of the controller `controller`: its name, unit, range, default and description. Its texts
// live as long as the process. Returns `PACELINE_NOTHING` after the last one. `paceline_sender_create_with` sets parameters.
//
// Pointers:
// Each pointer is null or valid; `controller` ends with a zero.
PacelineStatus paceline_controller_parameter(const char *controller,
                                             size_t index,
                                             struct PacelineParameter *parameter);

// Writes the signal with this index of a half of the controller `controller`: `half` is `PACELINE_HALF_…`. Its texts live as long as
// the process. Returns `PACELINE_NOTHING` after the last one. `paceline_sender_signals` and `paceline_receiver_signals` write the values
// in the order of these indices.
//
// Pointers:
// Each pointer is null or valid; `controller` ends with a zero.
PacelineStatus paceline_controller_signal(const char *controller,
                                          uint8_t half,
                                          size_t index,
                                          struct PacelineSignal *signal);

// Writes the name of a state of a signal: the values of such a signal are indices of states, from 0. Returns
// `PACELINE_NOTHING` after the last state, and for a signal that is a number.
//
// Pointers:
// Each pointer is null or valid; `controller` ends with a zero.
PacelineStatus paceline_controller_signal_state(const char *controller,
                                                uint8_t half,
                                                size_t index,
                                                size_t state,
                                                const char **name);

// Creates a receiver for senders with the controller `name`, and writes its address to `receiver`. `own_ssrc` is written
// into its RTCP as the sender of the packets, `media_ssrc` as the stream. Its feedback is transport-wide, or that of RFC 8888 for
// a controller that uses ECN. Errors: as `paceline_sender_create`, and a controller that needs neither a receive half nor
// feedback.
//
// Pointers:
// Each pointer is null or valid; `name` ends with a zero.
PacelineStatus paceline_receiver_create(const char *name,
                                        const struct PacelineLimits *limits,
                                        uint32_t own_ssrc,
                                        uint32_t media_ssrc,
                                        struct PacelineReceiver **receiver);

// Creates a receiver as `paceline_receiver_create` does, with some parameters of the controller changed. Pass the settings of the
// sender: a parameter of the send half has no effect here. Errors, besides: as `paceline_sender_create_with`.
//
// Pointers:
// Each pointer is null or valid; names end with a zero; `settings` points to `count` settings.
PacelineStatus paceline_receiver_create_with(const char *name,
                                             const struct PacelineLimits *limits,
                                             uint32_t own_ssrc,
                                             uint32_t media_ssrc,
                                             const struct PacelineSetting *settings,
                                             size_t count,
                                             struct PacelineReceiver **receiver);

// Frees a receiver. Null is allowed.
//
// Pointers:
// `receiver` is null or a receiver that is in no call. It must not be used afterwards.
void paceline_receiver_destroy(struct PacelineReceiver *receiver);

// Handles a packet that arrives at `now_ns` on the receiver's clock.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_receiver_packet(struct PacelineReceiver *receiver,
                                        int64_t now_ns,
                                        const struct PacelineReceivedPacket *packet);

// Handles the passing of time. Call it at `paceline_receiver_next_timeout`, or more often.
//
// Pointers:
// `receiver` is null or a receiver.
PacelineStatus paceline_receiver_on_timeout(struct PacelineReceiver *receiver, int64_t now_ns);

// Returns the time at which to call `paceline_receiver_on_timeout` and then `paceline_receiver_poll_rtcp`; it may be in the
// past. `PACELINE_NEVER` for none, for null and after a defect.
//
// Pointers:
// `receiver` is null or a receiver.
int64_t paceline_receiver_next_timeout(const struct PacelineReceiver *receiver);

// Writes the next RTCP compound to send to the sender: a receiver report, with blocks once a second, then REMB and other messages, or
// transport-wide or RFC 8888 feedback. Returns `PACELINE_NOTHING` if none is due. Call it until then. `capacity` must be at least 1200.
//
// Pointers:
// `buffer` is null or has room for `capacity` bytes; `length` is null or valid.
PacelineStatus paceline_receiver_poll_rtcp(struct PacelineReceiver *receiver,
                                           int64_t now_ns,
                                           uint8_t *buffer,
                                           size_t capacity,
                                           size_t *length);

// Creates a sender with the controller `name` (`paceline_controller_name` lists them), and writes its address to `sender`.
// Errors: a null pointer, limits that contradict each other, no such controller, a controller without a send half.
//
// Pointers:
// Each pointer is null or valid; `name` ends with a zero.
PacelineStatus paceline_sender_create(const char *name,
                                      const struct PacelineLimits *limits,
                                      struct PacelineSender **sender);

// Creates a sender as `paceline_sender_create` does, with some parameters of its controller changed
// (`paceline_controller_parameter` lists them). Of two settings with one name the later one counts. Errors, besides:
// `PACELINE_ERROR_PARAMETER` for a name that is no parameter, and `PACELINE_ERROR_ARGUMENT` for a value out of range. Then there is no
// sender.
//
// Pointers:
// Each pointer is null or valid; names end with a zero; `settings` points to `count` settings.
PacelineStatus paceline_sender_create_with(const char *name,
                                           const struct PacelineLimits *limits,
                                           const struct PacelineSetting *settings,
                                           size_t count,
                                           struct PacelineSender **sender);

// Copies a sender with its state. The two do not affect each other.
//
// Pointers:
// `sender` is null or a sender that is in no call; `copy` is null or valid.
PacelineStatus paceline_sender_copy(const struct PacelineSender *sender,
                                    struct PacelineSender **copy);

// Frees a sender. Null is allowed.
//
// Pointers:
// `sender` is null or a sender that is in no call. It must not be used afterwards.
void paceline_sender_destroy(struct PacelineSender *sender);

// Records a packet that leaves without the pacer of this sender, and writes its number to `sequence`, which may be null.
// `kind` is `PACELINE_KIND_…`; `size_bytes` is 1 to 65,535.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_packet_sent(struct PacelineSender *sender,
                                           int64_t now_ns,
                                           uint64_t size_bytes,
                                           uint8_t kind,
                                           uint64_t *sequence);

// Records the SSRC and the RTP sequence number of the packet `sequence`, by which RFC 8888 feedback names it. Call it for each
// packet that left, in order, if the receiver sends RFC 8888 feedback: that of the controllers with ECN. The numbers of an SSRC
// rise by one; if they do not, feedback on its packets before is ignored. At most 8 SSRCs are kept, those that began last.
// Returns `PACELINE_ERROR_ARGUMENT` if the packet has not left.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_rtp_number(struct PacelineSender *sender,
                                          uint64_t sequence,
                                          uint32_t ssrc,
                                          uint16_t rtp_sequence);

// Records a packet that leaves without the pacer of this sender, as `paceline_sender_packet_sent` does, as a part of the probe cluster
// `probe` (`paceline_sender_poll_probe`), or of none with `PACELINE_NO_PROBE`.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_probe_sent(struct PacelineSender *sender,
                                          int64_t now_ns,
                                          uint64_t size_bytes,
                                          uint8_t kind,
                                          int32_t probe,
                                          uint64_t *sequence);

// Writes the next probe cluster for a program with a pacer of its own: packets at its rate, one after the other, and no others in
// between. Returns `PACELINE_NOTHING` if there is none. A sender to which frames were pushed sends its clusters itself.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_poll_probe(struct PacelineSender *sender,
                                          struct PacelineProbe *probe);

// Sets the lowest and the highest rate of the encoder, bit/s, IP and UDP headers included, for a program with a pacer of its own;
// `queued_bytes` is what waits there. Call it before each frame. `paceline_sender_push_frame` does the same.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_encoder(struct PacelineSender *sender,
                                       int64_t now_ns,
                                       uint64_t min_bps,
                                       uint64_t max_bps,
                                       uint64_t queued_bytes);

// Writes the token of a packet that the last `paceline_sender_push_frame` removed from the queue, because its frame had waited for
// longer than the controller allows. Returns `PACELINE_NOTHING` if there is none.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_poll_discarded(struct PacelineSender *sender,
                                              uint64_t *token);

// Writes the next event. Returns `PACELINE_NOTHING` if there is none. Of each kind, and of each probe cluster, the last event waits; of
// probe clusters at most 64.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_poll_event(struct PacelineSender *sender,
                                          struct PacelineEvent *event);

// Queues a frame that was cut into packets; `key` is 1 if it can be decoded without earlier frames. The encoder makes
// between `min_bps` and `max_bps`. Returns `PACELINE_ERROR_FULL` if the queue would take more than 2 s, if a frame waits longer than
// the `queue_max_ns` of the decision, and while there is no network; then nothing is queued. What waited too long is removed from the
// queue: `paceline_sender_poll_discarded` returns it.
//
// Pointers:
// `packets` is null or points to `count` packets.
PacelineStatus paceline_sender_push_frame(struct PacelineSender *sender,
                                          int64_t now_ns,
                                          const struct PacelineFramePacket *packets,
                                          size_t count,
                                          uint8_t key,
                                          uint64_t min_bps,
                                          uint64_t max_bps);

// Writes the next packet that may leave now, and records it as sent. Returns `PACELINE_NOTHING` if none may. Call it until
// then after every other call, and at the time of `paceline_sender_next_timeout`. A probe of which a packet is more than 10 ms
// late is given up.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_poll_packet(struct PacelineSender *sender,
                                           int64_t now_ns,
                                           struct PacelinePacket *packet);

// Handles per-packet feedback of any format, one entry for each packet. Unknown packets, and those that have arrived before, are ignored.
// Pass a whole report, of all streams: packets below its lowest number that no report has named are no longer in flight. Returns
// `PACELINE_ERROR_CONTROLLER` if the controller uses none (`paceline_controller_needs`).
//
// Pointers:
// `arrivals` is null or points to `count` entries.
PacelineStatus paceline_sender_feedback(struct PacelineSender *sender,
                                        int64_t now_ns,
                                        const struct PacelineArrival *arrivals,
                                        size_t count);

// Handles an RTCP compound: transport-wide feedback (TWCC), RFC 8888 feedback, REMB, and the messages of Paceline's receivers.
// Receiver reports count as proof that packets arrive; pass their loss and round-trip time to `paceline_sender_loss` and
// `paceline_sender_rtt`. Other packets are skipped. Returns `PACELINE_ERROR_RTCP` for invalid bytes, and
// `PACELINE_ERROR_ARGUMENT` for RFC 8888 feedback if `paceline_sender_rtp_number` was never called.
//
// Pointers:
// `bytes` is null or points to `length` bytes.
PacelineStatus paceline_sender_rtcp(struct PacelineSender *sender,
                                    int64_t now_ns,
                                    const uint8_t *bytes,
                                    size_t length);

// Handles a sample of the round-trip time, above 0 and at most an hour.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_rtt(struct PacelineSender *sender, int64_t now_ns, int64_t rtt_ns);

// Handles the fraction of packets that receiver reports give as lost, 0 to 1. A call should cover at least 20 packets.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_loss(struct PacelineSender *sender,
                                    int64_t now_ns,
                                    double fraction);

// Handles a receiver estimated maximum bitrate (REMB), bit/s. Controllers that need none take it as a limit, or ignore it.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_remb(struct PacelineSender *sender,
                                    int64_t now_ns,
                                    uint64_t rate_bps);

// Sets the lowest and the highest target, bit/s. They apply at once. Probes above the highest target are dropped.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_bounds(struct PacelineSender *sender,
                                      int64_t now_ns,
                                      uint64_t min_bps,
                                      uint64_t max_bps);

// Handles a change of the network route: what was measured says nothing about the new path. Feedback on packets that left before
// is ignored; packets in the queue and the numbers of packets stay.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_route_change(struct PacelineSender *sender,
                                            int64_t now_ns,
                                            const struct PacelineLimits *limits);

// Handles the loss (0) and the return (1) of the network. In between `paceline_sender_poll_packet` returns no packet and
// `paceline_sender_push_frame` rejects frames. A change of the route does not bring the network back.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_availability(struct PacelineSender *sender,
                                            int64_t now_ns,
                                            uint8_t available);

// Handles the passing of time. Call it at `paceline_sender_next_timeout`, or more often.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_on_timeout(struct PacelineSender *sender, int64_t now_ns);

// Returns the time at which to call `paceline_sender_on_timeout` and then `paceline_sender_poll_packet`; it may be in the past.
// `PACELINE_NEVER` for none, for null and after a defect.
//
// Pointers:
// `sender` is null or a sender.
int64_t paceline_sender_next_timeout(const struct PacelineSender *sender);

// Returns the sending rate of the flow, bit/s, IP and UDP headers included; 0 for null and after a defect.
//
// Pointers:
// `sender` is null or a sender.
uint64_t paceline_sender_target(const struct PacelineSender *sender);

// Returns the pacing rate, bit/s; 0 for null and after a defect.
//
// Pointers:
// `sender` is null or a sender.
uint64_t paceline_sender_pacing(const struct PacelineSender *sender);

// Writes the decision in force, for a program with a pacer of its own.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_decision(const struct PacelineSender *sender,
                                        struct PacelineDecision *decision);

// Writes the state of the sender.
//
// Pointers:
// Each pointer is null or valid.
PacelineStatus paceline_sender_snapshot(const struct PacelineSender *sender,
                                        struct PacelineSnapshot *snapshot);

// Collects the signals of the send half from now on. Without this call they cost nothing.
//
// Pointers:
// `sender` is null or a sender.
PacelineStatus paceline_sender_enable_signals(struct PacelineSender *sender);

// Writes the last value of each signal of the send half, in the order of `paceline_controller_signal`; NaN for a signal without a
// value since `paceline_sender_enable_signals`. Further elements of `values` stay as they are. Returns `PACELINE_ERROR_BUFFER` if
// `capacity` is below the number of signals; 256 are enough for every controller.
//
// Pointers:
// `values` is null or has room for `capacity` elements.
PacelineStatus paceline_sender_signals(struct PacelineSender *sender,
                                       double *values,
                                       size_t capacity);

// Collects the signals of the receive half from now on. Without this call they cost nothing.
//
// Pointers:
// `receiver` is null or a receiver.
PacelineStatus paceline_receiver_enable_signals(struct PacelineReceiver *receiver);

// Writes the last value of each signal of the receive half, as `paceline_sender_signals` does for the send half.
//
// Pointers:
// `values` is null or has room for `capacity` elements.
PacelineStatus paceline_receiver_signals(struct PacelineReceiver *receiver,
                                         double *values,
                                         size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PACELINE_H */

/* The table of a controller in a shared library. The library defines and exports this function. */
#ifdef __cplusplus
extern "C"
#endif
const struct PacelineControllerV1 *paceline_controller_v1(void);
