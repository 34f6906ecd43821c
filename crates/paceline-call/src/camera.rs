//! What the camera sees: somebody who talks, in front of a shelf. Every picture follows from its number alone.
//!
//! A head turns and nods, its eyes blink, its mouth opens at the pace of syllables, its shoulders follow; the background is
//! still and detailed, and each pixel has a little noise of its own, as a camera's. So an encoder has what it has in a call:
//! small motion, one large detailed area that does not move, and noise that costs bits at high rates. After
//! [`LOOP`] pictures it begins again without a jump.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Pixels from left to right.
pub const WIDTH: usize = 640;
/// Pixels from top to bottom.
pub const HEIGHT: usize = 360;
/// Pictures in a second.
pub const RATE: u32 = 30;
/// Pictures until it begins again: 4 s.
pub const LOOP: u64 = 120;

/// Bytes of a picture: brightness, and two colours at half the resolution (I420).
pub const PICTURE: usize = WIDTH * HEIGHT * 3 / 2;

/// Most that noise adds to a pixel or takes from it.
const NOISE: u32 = 3;

/// A camera before which somebody talks.
#[derive(Clone, Debug)]
pub struct Camera {
    background: Vec<u8>,
}

/// An ellipse and its colour.
#[derive(Clone, Copy)]
struct Ellipse {
    center: (f64, f64),
    radii: (f64, f64),
    /// Brightness in the middle and at the rim, and both colours.
    shade: (f64, f64),
    color: (u8, u8),
}

impl Default for Camera {
    fn default() -> Self {
        Self { background: background() }
    }
}

impl Camera {
    /// Writes the picture of this number into `picture`: I420, rows without gaps.
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

    /// Writes the whole loop as a film that Chromium takes for a camera (YUV4MPEG2).
    ///
    /// # Errors
    /// There is no room.
    pub fn film(&self, path: &Path) -> io::Result<()> {
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

/// The person in this picture of the loop, back to front.
fn scene(number: u64) -> [Ellipse; 7] {
    // Whole waves in a loop, so that it closes.
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

/// A shelf of books, each with a colour and a grain of its own.
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

/// Marsaglia's generator: noise needs no better one, and it is the same everywhere.
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

    /// Mean absolute difference of brightness within rows and columns.
    fn difference(a: &[u8], b: &[u8], rows: core::ops::Range<usize>, columns: core::ops::Range<usize>) -> f64 {
        let n = rows.len() * columns.len();
        let at = rows.flat_map(|row| columns.clone().map(move |column| row * WIDTH + column));
        at.map(|i| a[i].abs_diff(b[i]) as f64).sum::<f64>() / n as f64
    }

    #[test]
    fn a_picture_follows_from_its_number_and_the_loop_closes() {
        let (first, next, last) = (picture(0), picture(1), picture(LOOP - 1));
        assert_eq!((first.len(), &first), (PICTURE, &picture(LOOP)));
        assert_ne!(first, next);
        // One step across the loop's seam is no larger than two steps within it.
        let (within, seam) =
            (difference(&first, &picture(2), 0..HEIGHT, 0..WIDTH), difference(&last, &first, 0..HEIGHT, 0..WIDTH));
        assert!(seam > 0.0 && seam < within * 1.1, "{seam} {within}");
    }

    /// The head moves; the shelf has nothing but noise, whose mean difference is that of two draws from seven values, 2.29.
    #[test]
    fn the_head_moves_and_the_shelf_does_not() {
        let (a, b) = (picture(0), picture(20));
        let (shelf, head) = (difference(&a, &b, 0..200, 0..150), difference(&a, &b, 60..280, 220..420));
        assert!((1.8..=2.4).contains(&shelf), "{shelf}");
        assert!((5.0..=60.0).contains(&head), "{head}");
    }

    /// What is compressed depends on all of it, so a change of the scene is a change of every call's load.
    #[test]
    fn the_scene_is_pinned() {
        let hash = |bytes: &[u8]| {
            bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ *b as u64).wrapping_mul(0x0100_0000_01B3))
        };
        assert_eq!(
            format!("{:016x} {:016x}", hash(&picture(0)), hash(&picture(77))),
            "463377a4c22836f1 bd28017652d0c59d"
        );
    }
}
