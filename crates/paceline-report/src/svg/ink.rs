//! What is put on the sheet: lines, dots, bars, words, each in one of few looks.

use super::layout::{Key, MM};
use super::thin::Place;
use crate::figure::Kind;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Side of a point, in units.
pub const DOT: i32 = 10;

/// Okabe and Ito's colours, which the color-blind can tell apart; black is for what belongs to nobody.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x8c, 0x8c, 0x00),
];
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const LIMIT: RGBColor = RGBColor(0xa8, 0xa8, 0xa8);
const GRID: RGBColor = RGBColor(0xe6, 0xe6, 0xe6);

/// Widths of lines, in units, and their dashes. The library's files know no dashes, so each pattern has a width of its own,
/// and [`finished`] writes the pattern beside it.
const STROKES: [(u32, &str); 5] = [(6, ""), (7, "22 12"), (8, "5 12"), (9, "36 10 5 10"), (14, "")];
const LIMIT_STROKE: usize = 4;
const HAIR: u32 = 3;
/// Length of a tick.
const TICK: i32 = MM;
/// Strength of a shade.
pub(super) const SHADE: f64 = 0.2;

/// 7 pt, in units.
const LETTER: i32 = 49;
const SAMPLE: i32 = 5 * MM;
const FONT: &str = "Helvetica, Arial, sans-serif";

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    colour: RGBColor,
    stroke: usize,
    mark: Mark,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    Line,
    Dot,
    Shade,
}

impl Look {
    /// The look of a series by the numbers of its colour and of its dash.
    pub(super) fn new(colour: usize, dash: usize, kind: Kind, dark: bool) -> Self {
        // Flows beyond the seventh have a colour again, in another dash.
        let dash = (dash + colour / COLOURS.len()) % LIMIT_STROKE;
        let mark = match kind {
            Kind::Points => Mark::Dot,
            Kind::Band => Mark::Shade,
            Kind::Line | Kind::Steps | Kind::Cdf => Mark::Line,
        };
        let RGBColor(r, g, b) = COLOURS[colour % COLOURS.len()];
        let darker = |part: u8| if dark && mark == Mark::Line { part / 2 } else { part };
        Self { colour: RGBColor(darker(r), darker(g), darker(b)), stroke: dash, mark }
    }

    /// Of what the world allows.
    pub(super) fn limit() -> Self {
        Self { colour: LIMIT, stroke: LIMIT_STROKE, mark: Mark::Line }
    }

    /// The same for whatever flow.
    pub(super) fn of_nobody(self) -> Self {
        Self { colour: if self.stroke == LIMIT_STROKE { LIMIT } else { INK }, ..self }
    }

    pub(super) fn sample_width(self) -> i32 {
        if self.mark == Mark::Line { SAMPLE } else { SAMPLE / 2 }
    }
}

/// About how wide a text is: letters of the font are half as wide as high, capitals more.
pub(super) fn text_width(text: &str) -> i32 {
    text.chars().map(|letter| if letter.is_uppercase() { LETTER * 3 / 4 } else { LETTER / 2 }).sum()
}

/// The sheet.
pub(super) struct Ink<'a>(SVGBackend<'a>);

/// Why what the library draws cannot fail.
const MEMORY: &str = "memory takes what is drawn";

impl<'a> Ink<'a> {
    /// A white sheet, whose document goes into a text.
    pub(super) fn new(text: &'a mut String, (width, height): Place) -> Self {
        let mut ink = Self(SVGBackend::with_string(text, (width as u32, height as u32)));
        ink.fill((0, 0), (width, height), WHITE.to_rgba());
        ink
    }

    /// Ends the document.
    pub(super) fn close(mut self) {
        self.0.present().expect(MEMORY);
    }

    pub(super) fn line(&mut self, line: &[Place], look: Look) {
        self.path(line.to_vec(), look.colour.to_rgba(), STROKES[look.stroke].0);
    }

    pub(super) fn dot(&mut self, (x, y): Place, look: Look) {
        self.fill((x - DOT / 2, y - DOT / 2), (x + DOT / 2, y + DOT / 2), look.colour.to_rgba());
    }

    pub(super) fn bar(&mut self, from: Place, to: Place, look: Look, strength: f64) {
        self.fill(from, to, look.colour.mix(strength));
    }

    /// A sample and its words, from the left.
    pub(super) fn key(&mut self, key: &Key) {
        let ((x, y), width) = (key.at, key.look.sample_width());
        match key.look.mark {
            Mark::Line => self.line(&[(x, y), (x + width, y)], key.look),
            Mark::Dot => self.dot((x + width / 2, y), key.look),
            Mark::Shade => self.bar((x, y - MM), (x + width, y + MM), key.look, SHADE),
        }
        self.words((x + width + MM, y), &key.text, (HPos::Left, VPos::Center), FontTransform::None);
    }

    /// What a panel is.
    pub(super) fn tag(&mut self, at: Place, text: &str) {
        self.words(at, text, (HPos::Left, VPos::Center), FontTransform::None);
    }

    /// The border of a panel.
    pub(super) fn frame(&mut self, (left, top): Place, (right, bottom): Place) {
        let corners = vec![(left, top), (left, bottom), (right, bottom), (right, top), (left, top)];
        self.path(corners, INK.to_rgba(), HAIR);
    }

    pub(super) fn grid(&mut self, from: Place, to: Place) {
        self.path(vec![from, to], GRID.to_rgba(), HAIR);
    }

    pub(super) fn part(&mut self, from: Place, to: Place) {
        self.path(vec![from, to], LIMIT.to_rgba(), HAIR);
    }

    pub(super) fn tick_left(&mut self, (x, y): Place, text: &str) {
        self.path(vec![(x - TICK, y), (x, y)], INK.to_rgba(), HAIR);
        self.label_left((x, y), text);
    }

    pub(super) fn label_left(&mut self, (x, y): Place, text: &str) {
        self.words((x - TICK - TICK / 2, y), text, (HPos::Right, VPos::Center), FontTransform::None);
    }

    pub(super) fn label_right(&mut self, (x, y): Place, text: &str) {
        self.words((x + TICK / 2, y), text, (HPos::Left, VPos::Center), FontTransform::None);
    }

    pub(super) fn tick_below(&mut self, (x, y): Place, text: &str) {
        self.path(vec![(x, y), (x, y + TICK)], INK.to_rgba(), HAIR);
        if !text.is_empty() {
            self.words((x, y + TICK + TICK / 2), text, (HPos::Center, VPos::Top), FontTransform::None);
        }
    }

    pub(super) fn name_below(&mut self, (x, y): Place, text: &str) {
        self.words((x, y + 9 * MM / 2), text, (HPos::Center, VPos::Top), FontTransform::None);
    }

    /// The name of a y axis, from bottom to top at the edge of its column.
    pub(super) fn name_left(&mut self, (x, y): Place, text: &str) {
        self.words((x + MM / 2, y), text, (HPos::Center, VPos::Top), FontTransform::Rotate270);
    }

    fn words(&mut self, at: Place, text: &str, (h, v): (HPos, VPos), turned: FontTransform) {
        // The library takes 1.24 times the height for the size.
        let font = (FONT, f64::from(LETTER) * 1.24).into_font().transform(turned);
        let style = TextStyle::from(font).color(&INK).pos(Pos::new(h, v));
        self.0.draw_text(text, &style, at).expect(MEMORY);
    }

    fn path(&mut self, path: Vec<Place>, colour: RGBAColor, width: u32) {
        let style = ShapeStyle { color: colour, filled: false, stroke_width: width };
        self.0.draw_path(path, &style).expect(MEMORY);
    }

    fn fill(&mut self, from: Place, to: Place, colour: RGBAColor) {
        let style = ShapeStyle { color: colour, filled: true, stroke_width: 0 };
        self.0.draw_rect(from, to, &style, true).expect(MEMORY);
    }
}

/// What the library cannot say: the sheet's size on paper, round joins, dashes.
pub(super) fn finished(text: &str, (width, height): Place) -> String {
    let pixels = format!(r#"width="{width}" height="{height}""#);
    let tenths = |units: i32| f64::from(units * 10 / MM) / 10.0;
    let paper = format!(r#"width="{}mm" height="{}mm" stroke-linejoin="round""#, tenths(width), tenths(height));
    let mut text = text.replacen(&pixels, &paper, 1);
    for (stroke, dashes) in STROKES.iter().filter(|(_, dashes)| !dashes.is_empty()) {
        let stroke = format!(r#"stroke-width="{stroke}""#);
        text = text.replace(&stroke, &format!(r#"{stroke} stroke-dasharray="{dashes}""#));
    }
    text.replace(r#" opacity="1""#, "")
}
