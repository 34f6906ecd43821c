// SPDX-License-Identifier: MIT OR Apache-2.0
//! A synthetic camera: a person talks in front of a bookshelf. A picture depends only on its number.
//!
//! The head turns and nods, the eyes blink, the mouth opens at the rate of syllables, and the shoulders follow. The
//! background is static and detailed, and every pixel has camera noise. This resembles the input of an encoder in a call:
//! small motion, a large static detailed area, and noise that costs bits at high rates. The video repeats after [`LOOP`]
//! pictures without a jump.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Width, px.
pub const WIDTH: usize = 640;
/// Height, px.
pub const HEIGHT: usize = 360;
/// Pictures per second.
pub const RATE: u32 = 30;
/// Pictures after which the video repeats: 4 s.
pub const LOOP: u64 = 120;

/// Bytes of a picture in I420: luma, and two chroma planes at half the resolution.
pub const PICTURE: usize = WIDTH * HEIGHT * 3 / 2;

/// Largest absolute noise of a pixel.
const NOISE: u32 = 3;

/// Renders the pictures.
#[derive(Clone, Debug)]
pub struct Camera {
    background: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Ellipse {
    center: (f64, f64),
    radii: (f64, f64),
    /// Luma at the centre and at the rim.
    shade: (f64, f64),
    /// Both chroma values.
    color: (u8, u8),
}

impl Default for Camera {
    fn default() -> Self {
        Self { background: background() }
    }
}

impl Camera {
    /// Writes picture `number` into `picture`: I420, rows without padding.
    pub fn picture(&self, number: u64, picture: &mut Vec<u8>) {
        picture.clear();
        picture.extend_from_slice(&self.background);
        for ellipse in scene(number % LOOP) {
            ellipse.draw(picture);
        }
        let mut random = Xorshift::new(number % LOOP + 1);
        for pixels in picture[..WIDTH * HEIGHT].chunks_exact_mut(8) {
            let mut bits = random.next();
            for pixel in pixels {
                let noise = (bits as u32 & 0xFF) % (2 * NOISE + 1);
                *pixel = (*pixel as u32 + noise).saturating_sub(NOISE) as u8;
                bits >>= 8;
            }
        }
    }

    /// Returns the number of the picture that Chromium's camera shows as its `number`th: at the end of the file it shows the last
    /// one twice.
    pub fn as_chromium_plays(number: u64) -> u64 {
        (number % (LOOP + 1)).min(LOOP - 1)
    }

    /// Writes one loop as a YUV4MPEG2 file, which Chromium accepts as a fake camera.
    pub fn write_y4m(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        writeln!(file, "YUV4MPEG2 W{WIDTH} H{HEIGHT} F{RATE}:1 Ip A1:1 C420")?;
        let mut picture = Vec::with_capacity(PICTURE);
        for number in 0..LOOP {
            self.picture(number, &mut picture);
            file.write_all(b"FRAME\n")?;
            file.write_all(&picture)?;
        }
        file.flush()
    }
}

/// Returns the shapes of the person in this picture, back to front.
fn scene(number: u64) -> [Ellipse; 7] {
    // A whole number of periods per loop makes the video repeat without a jump.
    let wave =
        |waves: f64, phase: f64| libm::sin(core::f64::consts::TAU * (waves * number as f64 / LOOP as f64 + phase));
    let (x, y) = (320.0 + 16.0 * wave(1.0, 0.0) + 4.0 * wave(3.0, 0.2), 165.0 + 5.0 * wave(2.0, 0.1));
    let open = 3.0 + 9.0 * (wave(13.0, 0.0) * wave(5.0, 0.3)).abs();
    let eye = if matches!(number, 41..=44 | 97..=100) { 1.5 } else { 7.0 };
    let ellipse = |center, radii, shade, color| Ellipse { center, radii, shade, color };
    [
        ellipse((x, y - 18.0), (82.0, 105.0), (40.0, 28.0), (124, 132)),
        ellipse((320.0 + 0.7 * (x - 320.0), 265.0), (36.0, 60.0), (125.0, 95.0), (111, 149)),
        ellipse((320.0 + 0.4 * (x - 320.0), 410.0), (190.0, 130.0), (70.0, 45.0), (140, 120)),
        ellipse((x, y), (70.0, 95.0), (175.0, 120.0), (110, 150)),
        ellipse((x - 28.0, y - 20.0), (11.0, eye), (40.0, 60.0), (128, 128)),
        ellipse((x + 28.0, y - 20.0), (11.0, eye), (40.0, 60.0), (128, 128)),
        ellipse((x, y + 45.0), (24.0, open), (55.0, 90.0), (115, 165)),
    ]
}

impl Ellipse {
    fn draw(&self, picture: &mut [u8]) {
        let (brightness, colors) = picture.split_at_mut(WIDTH * HEIGHT);
        let (blue, red) = colors.split_at_mut(WIDTH * HEIGHT / 4);
        let ((cx, cy), (rx, ry)) = (self.center, self.radii);
        let rows = (cy - ry).max(0.0) as usize..((cy + ry).ceil().max(0.0) as usize + 1).min(HEIGHT);
        for row in rows {
            let across = (row as f64 - cy) / ry;
            let half = rx * (1.0 - across * across).max(0.0).sqrt();
            let columns = (cx - half).max(0.0) as usize..((cx + half).max(0.0) as usize).min(WIDTH);
            for column in columns {
                let along = (column as f64 - cx) / rx;
                let out = along * along + across * across;
                let shade = self.shade.0 + (self.shade.1 - self.shade.0) * out.min(1.0);
                brightness[row * WIDTH + column] = shade as u8;
                let color = (row / 2) * (WIDTH / 2) + column / 2;
                (blue[color], red[color]) = self.color;
            }
        }
    }
}

/// Renders a bookshelf; each book has its own colour and texture.
fn background() -> Vec<u8> {
    const BOARD: usize = 90;
    let mut picture = vec![128; PICTURE];
    for row in 0..HEIGHT {
        let mut left = 0;
        let mut random = Xorshift::new(1000 + (row / BOARD) as u64);
        while left < WIDTH {
            let bits = random.next();
            let (width, shade) = (14 + bits as usize % 22, 50 + (bits >> 8) as usize % 120);
            let (blue, red) = (108 + (bits >> 16) as usize % 40, 108 + (bits >> 24) as usize % 40);
            for column in left..(left + width).min(WIDTH) {
                let grain = Xorshift::new((row * WIDTH + column) as u64 / 2 + 7).next() as usize % 14;
                let spine = if column == left || row % BOARD < 6 { 35 } else { shade + grain };
                picture[row * WIDTH + column] = spine as u8;
                let color = WIDTH * HEIGHT + (row / 2) * (WIDTH / 2) + column / 2;
                picture[color] = blue as u8;
                picture[color + WIDTH * HEIGHT / 4] = red as u8;
            }
            left += width;
        }
    }
    picture
}

/// Marsaglia's xorshift generator: sufficient for noise and equal on every platform.
struct Xorshift(u64);

impl Xorshift {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(number: u64) -> Vec<u8> {
        let mut picture = Vec::new();
        Camera::default().picture(number, &mut picture);
        picture
    }

    /// Returns the mean absolute luma difference in a rectangle.
    fn difference(a: &[u8], b: &[u8], rows: core::ops::Range<usize>, columns: core::ops::Range<usize>) -> f64 {
        let n = rows.len() * columns.len();
        let at = rows.flat_map(|row| columns.clone().map(move |column| row * WIDTH + column));
        at.map(|i| a[i].abs_diff(b[i]) as f64).sum::<f64>() / n as f64
    }

    /// In recordings of Chromium a frame of a quarter of the mean size comes every 121 frames.
    #[test]
    fn chromium_repeats_the_last_picture() {
        let shown: Vec<u64> = (118..124).map(Camera::as_chromium_plays).collect();
        assert_eq!(shown, [118, 119, 119, 0, 1, 2]);
    }

    #[test]
    fn pictures_depend_only_on_their_number_and_repeat_smoothly() {
        let (first, next, last) = (picture(0), picture(1), picture(LOOP - 1));
        assert_eq!((first.len(), &first), (PICTURE, &picture(LOOP)));
        assert_ne!(first, next);
        // One step across the end of the loop changes no more than two steps within it.
        let (within, seam) =
            (difference(&first, &picture(2), 0..HEIGHT, 0..WIDTH), difference(&last, &first, 0..HEIGHT, 0..WIDTH));
        assert!(seam > 0.0 && seam < within * 1.1, "{seam} {within}");
    }

    /// The shelf differs by noise only: the mean difference of two draws from seven values is 2.29.
    #[test]
    fn only_the_person_moves() {
        let (a, b) = (picture(0), picture(20));
        let (shelf, head) = (difference(&a, &b, 0..200, 0..150), difference(&a, &b, 60..280, 220..420));
        assert!((1.8..=2.4).contains(&shelf), "{shelf}");
        assert!((5.0..=60.0).contains(&head), "{head}");
    }

    /// The load of every call depends on the pictures, so they must not change unnoticed.
    #[test]
    fn pictures_are_pinned() {
        let hash = |bytes: &[u8]| {
            bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ *b as u64).wrapping_mul(0x0100_0000_01B3))
        };
        assert_eq!(
            format!("{:016x} {:016x}", hash(&picture(0)), hash(&picture(77))),
            "463377a4c22836f1 bd28017652d0c59d"
        );
    }
}
