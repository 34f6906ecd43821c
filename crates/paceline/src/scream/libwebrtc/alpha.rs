//! `l4s_alpha`: the fraction of marked packets, averaged with a fast rise and a slow fall (`UpdateL4SAlpha`). Each report updates
//! it, whatever the time since the last one.

use super::config::ScreamLibwebrtcConfig;

/// `l4s_alpha`.
#[derive(Clone, Debug, Default)]
pub struct L4sAlpha(f64);

impl L4sAlpha {
    /// Handles a report on `received` packets, more than zero, of which `marked` were marked.
    pub fn update(&mut self, received: u32, marked: u32, config: &ScreamLibwebrtcConfig) {
        let fraction = f64::from(marked) / f64::from(received);
        self.0 = if fraction > self.0 {
            (config.alpha_up * fraction + (1.0 - config.alpha_up) * self.0).min(1.0)
        } else {
            (1.0 - config.alpha_down) * self.0
        };
    }

    /// Returns the average, 0 to 1.
    pub fn get(&self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The small checks of section 13 of the specification: 0.1 with 40 % marked is 0.1375, unmarked 0.09921875.
    #[test]
    fn average_rises_fast_and_falls_slowly() {
        let after = |alpha, received, marked| {
            let mut alpha = L4sAlpha(alpha);
            alpha.update(received, marked, &ScreamLibwebrtcConfig::LIBWEBRTC);
            alpha.get()
        };
        assert!((after(0.1, 5, 2) - 0.1375).abs() < 1e-15);
        assert!((after(0.1, 5, 0) - 0.099_218_75).abs() < 1e-15);
        assert_eq!(after(0.5, 2, 1), 0.5 * 127.0 / 128.0, "an equal fraction lowers it");
        assert_eq!(after(1.0, 3, 3), 127.0 / 128.0);
        assert_eq!(L4sAlpha::default().get(), 0.0);
    }
}
