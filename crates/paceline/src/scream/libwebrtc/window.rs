//! The reference window (`UpdateRefWindow`): one reaction to loss, marks or delay, then growth, then the inflection point.

use super::config::{ScreamLibwebrtcConfig, since};
use super::growth::{Growth, increment};
use super::queue_delay::QueueDelay;
use super::rounding::{ratio, scale_size, size_ratio};
use super::virtual_rtt::VirtualRtt;
use paceline_units::{DataSize, Time};

/// The first inflection point.
const FIRST_INFLECTION: DataSize = DataSize::from_bytes(1);
/// The least square of the distance from the inflection point.
const NEAR_MIN: f64 = 0.1;
/// The least factor of the distance from the inflection point in backoff and growth.
pub const NEAR_FLOOR: f64 = 0.25;
/// The least factor of the average least delay.
pub const MIN_FLOOR: f64 = 0.1;

/// What a report means for the window. Averages contain the report.
#[derive(Clone, Copy, Debug)]
pub struct WindowInput<'a> {
    /// Bytes that are not marked.
    pub not_marked: DataSize,
    /// Whether a packet was marked.
    pub marked: bool,
    /// Whether losses are congestion: some in this report, and a loss level or a delay that confirm them.
    pub lost: bool,
    /// Whether the loss level forbids growth.
    pub lossy: bool,
    /// `l4s_alpha`.
    pub alpha: f64,
    pub delay: &'a QueueDelay,
    pub rtt: &'a VirtualRtt,
    /// The size up to which the window may grow.
    pub cap: DataSize,
}

/// The reference window.
#[derive(Clone, Debug)]
pub struct ReferenceWindow {
    size: DataSize,
    /// The size before the last fall after growth.
    inflection: DataSize,
    /// Whether the window has grown since then.
    may_inflect: bool,
    /// The last reaction.
    reacted: Option<Time>,
    /// The last fall.
    decreased: Option<Time>,
}

impl ReferenceWindow {
    /// Creates a window of the least size.
    pub fn new(config: &ScreamLibwebrtcConfig) -> Self {
        let (size, inflection) = (config.min_window, FIRST_INFLECTION);
        Self { size, inflection, may_inflect: true, reacted: None, decreased: None }
    }

    /// Sets the size with the first report.
    pub fn start(&mut self, size: DataSize, config: &ScreamLibwebrtcConfig) {
        self.size = size.max(config.min_window);
    }

    /// Handles a report.
    pub fn update(&mut self, now: Time, input: &WindowInput<'_>, config: &ScreamLibwebrtcConfig) {
        let before = self.size;
        let delayed = input.delay.is_detected(config);
        let is_due = since(now, self.reacted) >= input.rtt.reaction_interval(config);
        if is_due && (input.lost || input.marked || delayed) {
            self.reacted = Some(now);
            self.size = scale_size(self.size, 1.0 - self.backoff(input, config));
        }
        let is_calm = !input.marked && !input.lossy && !delayed;
        if is_calm || self.reacted == Some(now) {
            self.grow(now, input, config);
        }
        self.update_inflection(now, before);
    }

    /// Returns the share of the window that a reaction takes: that of the first cause of loss, marks, delay.
    fn backoff(&self, input: &WindowInput<'_>, config: &ScreamLibwebrtcConfig) -> f64 {
        if input.lost {
            return 1.0 - config.beta_loss;
        }
        // There are several reactions in a long round-trip time.
        let reactions = ratio(input.rtt.smoothed(), config.virtual_rtt).max(1.0);
        if !input.marked {
            return input.delay.virtual_alpha(config) / 2.0 / reactions;
        }
        let backoff = input.alpha / 2.0 / reactions;
        if input.delay.is_detected(config) {
            return backoff;
        }
        let near = self.inflection_factor(config).max(NEAR_FLOOR);
        backoff * near * input.delay.min_factor(MIN_FLOOR, config)
    }

    fn grow(&mut self, now: Time, input: &WindowInput<'_>, config: &ScreamLibwebrtcConfig) {
        if self.size >= input.cap {
            return;
        }
        let growth = Growth {
            window: self.size,
            near: self.inflection_factor(config),
            since_reaction: since(now, self.reacted),
            delay: input.delay,
            rtt: input.rtt,
        };
        let increment = increment(input.not_marked, &growth, config);
        self.size = (self.size + increment).min(input.cap).max(config.min_window);
    }

    /// The inflection point is the size before the first fall after growth, if the report lowered the window in all.
    fn update_inflection(&mut self, now: Time, before: DataSize) {
        if self.size > before {
            self.may_inflect = true;
        }
        if self.size < before {
            self.decreased = Some(now);
            if core::mem::take(&mut self.may_inflect) {
                self.inflection = before;
            }
        }
    }

    /// Returns the factor of the distance from the inflection point, 0.1 (near) to 1.
    fn inflection_factor(&self, config: &ScreamLibwebrtcConfig) -> f64 {
        let distance = DataSize::from_bytes(self.size.as_bytes().abs_diff(self.inflection.as_bytes()));
        let distance = size_ratio(scale_size(distance, config.inflection_factor), self.inflection);
        (distance * distance).clamp(NEAR_MIN, 1.0)
    }

    /// Returns the size.
    pub fn get(&self) -> DataSize {
        self.size
    }

    /// Returns the inflection point.
    pub fn inflection(&self) -> DataSize {
        self.inflection
    }

    /// Returns the time of the last reaction.
    pub fn reacted(&self) -> Option<Time> {
        self.reacted
    }

    /// Returns the time of the last fall.
    pub fn decreased(&self) -> Option<Time> {
        self.decreased
    }
}

/// Returns the bound on bytes in flight (`max_data_in_flight`).
pub fn send_window(window: DataSize, delay: &QueueDelay, config: &ScreamLibwebrtcConfig) -> DataSize {
    let (least, most) = (config.overhead_min, config.overhead_max);
    scale_size(window, least + (most - least) * delay.min_factor(0.0, config))
}

#[cfg(test)]
mod tests {
    use super::super::queue_delay::tests::averages;
    use super::super::target_rate::target_of_window;
    use super::super::virtual_rtt::tests::times;
    use super::*;
    use paceline_units::TimeDelta;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const NOW: Time = Time::from_secs(100);

    /// A row of section 13 of the specification. Times in ms, sizes in bytes.
    struct Vector {
        window: u64,
        inflection: u64,
        may_inflect: bool,
        /// Smoothed round-trip time and hold time.
        rtt: (i64, i64),
        /// Averages: queuing delay, least delay, difference.
        delay: (i64, i64, i64),
        not_marked: u64,
        marked: bool,
        lost: bool,
        lossy: bool,
        alpha: f64,
        /// Time since the last reaction.
        gap: Option<i64>,
        in_flight: u64,
    }

    const QUIET: Vector = Vector {
        window: 0,
        inflection: 1,
        may_inflect: true,
        rtt: (50, 10),
        delay: (0, 0, 0),
        not_marked: 0,
        marked: false,
        lost: false,
        lossy: false,
        alpha: 0.0,
        gap: None,
        in_flight: 0,
    };

    /// Returns window, inflection point and target.
    fn after(vector: &Vector) -> (u64, u64, u64) {
        let (window, _) = updated(vector);
        let rtt = times(vector.rtt.0, vector.rtt.1);
        let target = target_of_window(window.get(), &rtt, &CONFIG);
        (window.get().as_bytes(), window.inflection().as_bytes(), target.as_bps())
    }

    fn updated(vector: &Vector) -> (ReferenceWindow, DataSize) {
        let bytes = DataSize::from_bytes;
        let mut flight = super::super::flight::FlightMax::default();
        flight.handle(bytes(vector.in_flight));
        let mut window = ReferenceWindow {
            size: bytes(vector.window),
            inflection: bytes(vector.inflection),
            may_inflect: vector.may_inflect,
            reacted: vector.gap.map(|gap| NOW - TimeDelta::from_millis(gap)),
            decreased: None,
        };
        let input = WindowInput {
            not_marked: bytes(vector.not_marked),
            marked: vector.marked,
            lost: vector.lost,
            lossy: vector.lossy,
            alpha: vector.alpha,
            delay: &averages(vector.delay.0, vector.delay.1, vector.delay.2),
            rtt: &times(vector.rtt.0, vector.rtt.1),
            cap: flight.window_cap(&CONFIG),
        };
        window.update(NOW, &input, &CONFIG);
        (window, input.cap)
    }

    /// Vectors 1 (after the first window of 2250 B), 2, 3 and 9.
    #[test]
    fn window_grows_as_in_the_vectors() {
        let first = Vector { window: 2250, not_marked: 1200, in_flight: 1200, ..QUIET };
        assert_eq!(after(&first), (2600, 1, 277_333));
        let second = Vector { window: 50_000, not_marked: 10_000, in_flight: 60_000, ..QUIET };
        assert_eq!(after(&second), (50_456, 1, 6_727_466));
        let third = Vector {
            window: 20_000,
            inflection: 40_000,
            rtt: (10, 5),
            not_marked: 5000,
            gap: Some(1000),
            in_flight: 20_000,
            ..QUIET
        };
        assert_eq!(after(&third), (20_130, 40_000, 10_736_000));
        let ninth = Vector { window: 21_000, rtt: (100, 0), not_marked: 19_000, in_flight: 18_500, ..QUIET };
        assert_eq!(after(&ninth), (21_630, 1, 1_730_400));
        assert_eq!(after(&Vector { window: 60_000, in_flight: 30_000, ..ninth }).0, 60_000, "above the cap");
    }

    /// Vectors 4 to 6.
    #[test]
    fn marks_and_delay_lower_the_window_as_in_the_vectors() {
        let fourth = Vector {
            window: 50_000,
            inflection: 48_000,
            rtt: (50, 0),
            delay: (5, 5, 4),
            marked: true,
            alpha: 0.2,
            not_marked: 8000,
            gap: Some(30),
            in_flight: 50_000,
            ..QUIET
        };
        assert_eq!(after(&fourth), (49_593, 50_000, 7_934_880));
        let fifth = Vector {
            window: 100_000,
            inflection: 150_000,
            rtt: (20, 0),
            delay: (35, 12, 12),
            marked: true,
            alpha: 0.5,
            not_marked: 3000,
            gap: Some(20),
            in_flight: 100_000,
            ..QUIET
        };
        assert_eq!(after(&fifth), (75_000, 100_000, 30_000_000));
        let sixth = Vector {
            window: 80_000,
            inflection: 100_000,
            may_inflect: false,
            rtt: (100, 10),
            delay: (45, 20, 2),
            not_marked: 6000,
            gap: Some(100),
            in_flight: 80_000,
            ..QUIET
        };
        assert_eq!(after(&sixth), (75_003, 100_000, 5_454_763));
    }

    /// Vectors 7, 8 and 10.
    #[test]
    fn losses_lower_the_window_as_in_the_vectors() {
        let seventh = Vector {
            window: 40_000,
            rtt: (40, 5),
            delay: (1, 1, 1),
            lost: true,
            lossy: true,
            not_marked: 9000,
            in_flight: 40_000,
            ..QUIET
        };
        assert_eq!(after(&seventh), (28_411, 40_000, 5_050_844));
        assert_eq!(after(&Vector { lost: false, ..seventh }), (40_000, 1, 7_111_111));
        let tenth = Vector {
            window: 1200,
            inflection: 5000,
            may_inflect: false,
            rtt: (30, 0),
            delay: (70, 20, 20),
            marked: true,
            lost: true,
            alpha: 1.0,
            gap: Some(25),
            in_flight: 1200,
            ..QUIET
        };
        assert_eq!(after(&tenth), (1000, 5000, 213_333));
    }

    /// A report with a mark within the reaction interval raises nothing; a reaction in this report does not forbid growth.
    #[test]
    fn marks_forbid_growth_except_in_the_report_with_the_reaction() {
        let marked = Vector {
            window: 40_000,
            rtt: (50, 0),
            marked: true,
            not_marked: 10_000,
            in_flight: 60_000,
            gap: Some(24),
            ..QUIET
        };
        assert_eq!(after(&marked).0, 40_000);
        assert!(after(&Vector { gap: Some(25), ..marked }).0 > 40_000, "alpha is 0");
        let short = Vector { rtt: (10, 0), gap: Some(9), ..marked };
        assert_eq!(after(&short).0, 40_000);
        assert!(after(&Vector { gap: Some(10), ..short }).0 > 40_000);
    }

    #[test]
    fn times_of_reactions_and_falls_are_kept() {
        let fall = Vector { window: 40_000, delay: (45, 0, 0), in_flight: 60_000, ..QUIET };
        let (window, _) = updated(&fall);
        assert_eq!((window.reacted(), window.decreased()), (Some(NOW), Some(NOW)));
        let rise = Vector { not_marked: 10_000, marked: true, delay: (0, 0, 0), ..fall };
        let (window, _) = updated(&rise);
        assert_eq!((window.reacted(), window.decreased(), window.may_inflect), (Some(NOW), None, true));
        let (window, _) = updated(&Vector { may_inflect: false, ..rise });
        assert!(window.may_inflect, "after growth");
    }

    /// The distance is 2 (50 - 40) / 40 = 0.5 above, and 2 (40 - 30) / 40 = 0.5 below the point.
    #[test]
    fn factor_is_the_square_of_twice_the_distance_from_the_inflection_point() {
        let factor = |size, inflection| {
            let (size, inflection) = (DataSize::from_bytes(size), DataSize::from_bytes(inflection));
            ReferenceWindow { size, inflection, ..ReferenceWindow::new(&CONFIG) }.inflection_factor(&CONFIG)
        };
        assert_eq!([factor(50_000, 40_000), factor(30_000, 40_000)], [0.25, 0.25]);
        assert_eq!([factor(40_000, 40_000), factor(60_000, 40_000), factor(99_000, 40_000)], [0.1, 1.0, 1.0]);
    }

    /// The small checks of section 13: 3, 2.55, 1.65, 1.5 at least delays of 2.5, 5, 10, 11 ms.
    #[test]
    fn send_window_is_smaller_with_a_queue() {
        let at = |us: i64| {
            let mut delay = QueueDelay::default();
            let config = ScreamLibwebrtcConfig { min_gain: 1.0, ..CONFIG };
            delay.update(Time::ZERO, TimeDelta::ZERO, TimeDelta::ZERO, &config);
            delay.update(Time::ZERO, TimeDelta::from_micros(us), TimeDelta::from_micros(us), &config);
            send_window(DataSize::from_bytes(1000), &delay, &CONFIG).as_bytes()
        };
        assert_eq!([2500, 5000, 10_000, 11_000].map(at), [3000, 2550, 1650, 1500]);
    }

    #[test]
    fn first_window_is_at_least_the_minimum() {
        let mut window = ReferenceWindow::new(&CONFIG);
        assert_eq!(window.get(), DataSize::from_bytes(1000));
        window.start(DataSize::from_bytes(2250), &CONFIG);
        assert_eq!(window.get(), DataSize::from_bytes(2250));
        window.start(DataSize::from_bytes(999), &CONFIG);
        assert_eq!(window.get(), DataSize::from_bytes(1000));
    }
}
