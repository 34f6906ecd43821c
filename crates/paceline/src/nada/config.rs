//! Every number of NADA as RFC 8698 has it.

use super::rfc8698;
use super::{GradualConfig, ObserverConfig, PenaltyConfig, RampUpConfig, ShapingConfig, Smoothing};
use crate::blocks::BaseDelayConfig;
use crate::{Config, Controller, Field, Setup, SignalSpec};
use paceline_units::TimeDelta;

/// RFC 8698's numbers, for either place where packets are observed. `Default` is its table 2.
#[derive(Clone, Debug, PartialEq)]
pub struct NadaConfig<const AT_SENDER: bool> {
    /// Time between two reports, `DELTA`.
    pub interval: TimeDelta,
    /// What is observed of packets that arrived.
    pub observer: ObserverConfig,
    /// Accelerated ramp-up.
    pub ramp_up: RampUpConfig,
    /// Bound of the filter's delay, `DFILT`.
    pub filter_delay: TimeDelta,
    /// Weight of the flow, `PRIO`.
    pub priority: f64,
    /// Gradual update.
    pub gradual: GradualConfig,
    /// The rate-shaping buffer.
    pub shaping: ShapingConfig,
}

impl<const AT_SENDER: bool> Default for NadaConfig<AT_SENDER> {
    fn default() -> Self {
        Self {
            interval: TimeDelta::from_millis(100),
            observer: ObserverConfig {
                log_window: TimeDelta::from_millis(500),
                base_delay: BaseDelayConfig { history: 20, span: TimeDelta::from_secs(60) },
                q_eps: 10.0,
                q_th: 50.0,
                lambda: 0.5,
                multiloss: 7.0,
                alpha: 0.1,
                smoothing: Smoothing::Packets,
                penalty: PenaltyConfig { d_loss: 10.0, plr_ref: 0.01, d_mark: 2.0, pmr_ref: 0.01 },
            },
            ramp_up: RampUpConfig { gamma_max: 0.5, q_bound: 50.0 },
            filter_delay: TimeDelta::from_millis(120),
            priority: 1.0,
            gradual: GradualConfig { x_ref: 10.0, kappa: 0.5, eta: 2.0, tau: 500.0 },
            shaping: ShapingConfig { beta_v: 0.1, beta_s: 0.1, fps: 30.0, most: 0.05 },
        }
    }
}

impl<const AT_SENDER: bool> Config for NadaConfig<AT_SENDER> {
    const FIELDS: &'static [Field<Self>] = &[
        field(
            "delta_ms",
            "ms",
            "time between two reports, DELTA, table 2",
            (10.0, 1e4),
            |c| c.interval.as_millis_f64(),
            |c, v| c.interval = TimeDelta::from_millis_f64(v),
        ),
        field(
            "logwin_ms",
            "ms",
            "window of losses, marks, delays and rate, LOGWIN, table 2",
            (10.0, 1e4),
            |c| c.observer.log_window.as_millis_f64(),
            |c, v| c.observer.log_window = TimeDelta::from_millis_f64(v),
        ),
        field(
            "base_minutes",
            "min",
            "how long the least delay is remembered (section 5.1.1: tens of minutes)",
            (1.0, BaseDelayConfig::HISTORY_MAX as f64),
            |c| c.observer.base_delay.history as f64,
            |c, v| c.observer.base_delay.history = v as usize,
        ),
        field(
            "qeps_ms",
            "ms",
            "from this delay on there is a queue, and no ramp-up, QEPS, table 2",
            (0.0, 1e4),
            |c| c.observer.q_eps,
            |c, v| c.observer.q_eps = v,
        ),
        field(
            "qth_ms",
            "ms",
            "queuing delay from which warping takes away, QTH, table 2",
            (0.1, 1e4),
            |c| c.observer.q_th,
            |c, v| c.observer.q_th = v,
        ),
        field(
            "lambda",
            "",
            "how fast warping takes away, LAMBDA, table 2; 0 caps at QTH",
            (0.0, 100.0),
            |c| c.observer.lambda,
            |c, v| c.observer.lambda = v,
        ),
        field(
            "multiloss",
            "",
            "average loss intervals after which a loss expires, MULTILOSS, table 2",
            (0.0, 1e6),
            |c| c.observer.multiloss,
            |c, v| c.observer.multiloss = v,
        ),
        field(
            "alpha",
            "",
            "weight of the present in the ratios of losses and marks, ALPHA, table 2",
            (0.0, 1.0),
            |c| c.observer.alpha,
            |c, v| c.observer.alpha = v,
        ),
        field(
            "smooth_reports",
            "",
            "0: the ratios are smoothed at each packet, section 4.2; 1: at each report (the authors' ns-3 module)",
            (0.0, 1.0),
            |c| f64::from(u8::from(c.observer.smoothing == Smoothing::Reports)),
            |c, v| c.observer.smoothing = if v >= 0.5 { Smoothing::Reports } else { Smoothing::Packets },
        ),
        field(
            "dloss_ms",
            "ms",
            "delay that losses at the reference ratio stand for, DLOSS, table 2",
            (0.0, 1e4),
            |c| c.observer.penalty.d_loss,
            |c, v| c.observer.penalty.d_loss = v,
        ),
        field(
            "plrref",
            "",
            "reference loss ratio, PLRREF, table 2",
            (1e-4, 1.0),
            |c| c.observer.penalty.plr_ref,
            |c, v| c.observer.penalty.plr_ref = v,
        ),
        field(
            "dmark_ms",
            "ms",
            "delay that marks at the reference ratio stand for, DMARK, table 2",
            (0.0, 1e4),
            |c| c.observer.penalty.d_mark,
            |c, v| c.observer.penalty.d_mark = v,
        ),
        field(
            "pmrref",
            "",
            "reference marking ratio, PMRREF, table 2",
            (1e-4, 1.0),
            |c| c.observer.penalty.pmr_ref,
            |c, v| c.observer.penalty.pmr_ref = v,
        ),
        field(
            "gamma_max",
            "",
            "most that a ramp-up adds to the received rate, GAMMA_MAX, table 2",
            (0.0, 10.0),
            |c| c.ramp_up.gamma_max,
            |c, v| c.ramp_up.gamma_max = v,
        ),
        field(
            "qbound_ms",
            "ms",
            "queuing delay that a ramp-up may cause, QBOUND, table 2",
            (0.0, 1e4),
            |c| c.ramp_up.q_bound,
            |c, v| c.ramp_up.q_bound = v,
        ),
        field(
            "dfilt_ms",
            "ms",
            "bound of the filter's delay, DFILT, table 2",
            (0.0, 1e4),
            |c| c.filter_delay.as_millis_f64(),
            |c, v| c.filter_delay = TimeDelta::from_millis_f64(v),
        ),
        field("prio", "", "weight of the flow, PRIO, table 2", (0.0, 1e3), |c| c.priority, |c, v| c.priority = v),
        field(
            "xref_ms",
            "ms",
            "reference signal, XREF, table 2",
            (0.0, 1e4),
            |c| c.gradual.x_ref,
            |c, v| c.gradual.x_ref = v,
        ),
        field(
            "kappa",
            "",
            "scaling of the gradual update, KAPPA, table 2",
            (0.0, 10.0),
            |c| c.gradual.kappa,
            |c, v| c.gradual.kappa = v,
        ),
        field(
            "eta",
            "",
            "weight of the signal's change, ETA, table 2",
            (0.0, 100.0),
            |c| c.gradual.eta,
            |c, v| c.gradual.eta = v,
        ),
        field(
            "tau_ms",
            "ms",
            "longest round-trip time of the gradual update, TAU, table 2",
            (1.0, 1e5),
            |c| c.gradual.tau,
            |c, v| c.gradual.tau = v,
        ),
        field(
            "fps",
            "1/s",
            "frames a second by which the shaping buffer becomes a rate, FPS, table 2",
            (1.0, 1000.0),
            |c| c.shaping.fps,
            |c, v| c.shaping.fps = v,
        ),
        field(
            "beta_v",
            "",
            "share of the shaping buffer that encoders leave free, BETA_V, table 2",
            (0.0, 10.0),
            |c| c.shaping.beta_v,
            |c, v| c.shaping.beta_v = v,
        ),
        field(
            "beta_s",
            "",
            "share of the shaping buffer that the pacer adds, BETA_S, table 2",
            (0.0, 10.0),
            |c| c.shaping.beta_s,
            |c, v| c.shaping.beta_s = v,
        ),
        field(
            "beta_most",
            "",
            "most that shaping takes and adds, as a share of the rate, eq. 11 and 12",
            (0.0, 1.0),
            |c| c.shaping.most,
            |c, v| c.shaping.most = v,
        ),
    ];

    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) =
        if AT_SENDER { (&rfc8698::SIGNALS, &[]) } else { rfc8698::SIGNALS.split_at(rfc8698::SENDER_SIGNALS) };

    fn build(&self, setup: &Setup) -> Controller {
        rfc8698::controller(self, setup)
    }
}

/// One line of the table above.
const fn field<const AT_SENDER: bool>(
    name: &'static str,
    unit: &'static str,
    source: &'static str,
    range: (f64, f64),
    get: fn(&NadaConfig<AT_SENDER>) -> f64,
    set: fn(&mut NadaConfig<AT_SENDER>, f64),
) -> Field<NadaConfig<AT_SENDER>> {
    Field { name, unit, source, range, get, set }
}
