//! The received rate, on the receiver's clock (`UpdateReceiveRate`).

use super::config::ScreamLibwebrtcConfig;
use crate::blocks::units::rate_of;
use paceline_units::{DataSize, Rate, RemoteTime};

/// The rate at which packets arrived over the last 100 ms or more.
#[derive(Clone, Debug, Default)]
pub struct ReceivedRate {
    rate: Rate,
    received: DataSize,
    began: Option<RemoteTime>,
}

impl ReceivedRate {
    /// Handles the bytes that a report says have arrived, the last of them at `last`.
    pub fn update(&mut self, last: RemoteTime, received: DataSize, config: &ScreamLibwebrtcConfig) {
        self.received += received;
        let Some(began) = self.began else {
            (self.began, self.rate, self.received) = (Some(last), Rate::MAX, DataSize::ZERO);
            return;
        };
        let time = last - began;
        if time >= config.received {
            self.rate = rate_of(core::mem::take(&mut self.received), time);
            self.began = Some(last);
        }
    }

    /// Returns the rate: zero before the first report, [`Rate::MAX`] until it is measured.
    pub fn get(&self) -> Rate {
        self.rate
    }

    /// Returns the rate; `None` from the first report on until it is measured.
    pub fn finite(&self) -> Option<Rate> {
        (self.rate < Rate::MAX).then_some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 3000 B in 120 ms are 200 kbit/s; the first report only starts the measurement.
    #[test]
    fn rate_is_measured_over_100_ms_of_the_receivers_clock() {
        let mut received = ReceivedRate::default();
        let mut after = |ms: i64, bytes| {
            let config = ScreamLibwebrtcConfig::LIBWEBRTC;
            received.update(RemoteTime::from_millis(ms), DataSize::from_bytes(bytes), &config);
            received.get()
        };
        assert_eq!(after(-50, 9000), Rate::MAX);
        assert_eq!(after(49, 1000), Rate::MAX);
        assert_eq!(after(70, 2000), Rate::from_kbps(200));
        assert_eq!(after(169, 1250), Rate::from_kbps(200));
        assert_eq!(after(170, 1250), Rate::from_kbps(200));
        assert_eq!(after(100, 1250), Rate::from_kbps(200), "an older arrival");
        assert_eq!(after(270, 1250), Rate::from_kbps(200));
        assert_eq!(after(370, 2500), Rate::from_kbps(200));
        assert_eq!(after(470, 5000), Rate::from_kbps(400));
    }

    #[test]
    fn rate_is_finite_once_it_is_measured() {
        let mut received = ReceivedRate::default();
        assert_eq!((received.get(), received.finite()), (Rate::ZERO, Some(Rate::ZERO)));
        let config = ScreamLibwebrtcConfig::LIBWEBRTC;
        received.update(RemoteTime::ZERO, DataSize::ZERO, &config);
        assert_eq!(received.finite(), None);
        received.update(RemoteTime::from_millis(100), DataSize::from_bytes(100), &config);
        assert_eq!(received.finite(), Some(Rate::from_bps(8000)));
    }
}
