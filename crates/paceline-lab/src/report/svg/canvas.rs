// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drawing surface: lines, dots, bars and text.

use super::layout::LegendEntry;
use super::style::{FOREGROUND, LIMIT, MM, Mark, Point, STROKES, Style, TEXT_HEIGHT};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Side of a point, in units.
pub const DOT: i32 = 10;
const GRID: RGBColor = RGBColor(0xe6, 0xe6, 0xe6);
const HAIR: u32 = 3;
const TICK: i32 = MM;
pub(super) const SHADE: f64 = 0.2;
const FONT: &str = "Helvetica, Arial, sans-serif";

pub(super) struct Canvas<'a>(SVGBackend<'a>);

const INFALLIBLE: &str = "writing to memory does not fail";

impl<'a> Canvas<'a> {
    /// Creates a white canvas that writes its document to `text`.
    pub(super) fn new(text: &'a mut String, (width, height): Point) -> Self {
        let mut canvas = Self(SVGBackend::with_string(text, (width as u32, height as u32)));
        canvas.fill((0, 0), (width, height), WHITE.to_rgba());
        canvas
    }

    pub(super) fn close(mut self) {
        self.0.present().expect(INFALLIBLE);
    }

    pub(super) fn line(&mut self, line: &[Point], style: Style) {
        self.path(line.to_vec(), style.colour.to_rgba(), STROKES[style.stroke].0);
    }

    pub(super) fn dot(&mut self, (x, y): Point, style: Style) {
        self.fill((x - DOT / 2, y - DOT / 2), (x + DOT / 2, y + DOT / 2), style.colour.to_rgba());
    }

    pub(super) fn bar(&mut self, from: Point, to: Point, style: Style, strength: f64) {
        self.fill(from, to, style.colour.mix(strength));
    }

    pub(super) fn area(&mut self, corners: &[Point], style: Style) {
        self.0.fill_polygon(corners.iter().copied(), &style.colour.mix(SHADE)).expect(INFALLIBLE);
    }

    pub(super) fn legend_entry(&mut self, entry: &LegendEntry) {
        let ((x, y), width) = (entry.at, entry.style.sample_width());
        match entry.style.mark {
            Mark::Line => self.line(&[(x, y), (x + width, y)], entry.style),
            Mark::Dot => self.dot((x + width / 2, y), entry.style),
            Mark::Shade => self.bar((x, y - MM), (x + width, y + MM), entry.style, SHADE),
        }
        self.text((x + width + MM, y), &entry.text, (HPos::Left, VPos::Center), FontTransform::None);
    }

    pub(super) fn title(&mut self, at: Point, text: &str) {
        self.text(at, text, (HPos::Left, VPos::Center), FontTransform::None);
    }

    pub(super) fn frame(&mut self, (left, top): Point, (right, bottom): Point) {
        let corners = vec![(left, top), (left, bottom), (right, bottom), (right, top), (left, top)];
        self.path(corners, FOREGROUND.to_rgba(), HAIR);
    }

    pub(super) fn grid(&mut self, from: Point, to: Point) {
        self.path(vec![from, to], GRID.to_rgba(), HAIR);
    }

    pub(super) fn separator(&mut self, from: Point, to: Point) {
        self.path(vec![from, to], LIMIT.to_rgba(), HAIR);
    }

    pub(super) fn y_tick(&mut self, (x, y): Point, text: &str) {
        self.path(vec![(x - TICK, y), (x, y)], FOREGROUND.to_rgba(), HAIR);
        self.label_left((x, y), text);
    }

    pub(super) fn label_left(&mut self, (x, y): Point, text: &str) {
        self.text((x - TICK - TICK / 2, y), text, (HPos::Right, VPos::Center), FontTransform::None);
    }

    pub(super) fn label_right(&mut self, (x, y): Point, text: &str) {
        self.text((x + TICK / 2, y), text, (HPos::Left, VPos::Center), FontTransform::None);
    }

    pub(super) fn x_tick(&mut self, (x, y): Point, text: &str) {
        self.path(vec![(x, y), (x, y + TICK)], FOREGROUND.to_rgba(), HAIR);
        if !text.is_empty() {
            self.text((x, y + TICK + TICK / 2), text, (HPos::Center, VPos::Top), FontTransform::None);
        }
    }

    pub(super) fn x_name(&mut self, (x, y): Point, text: &str) {
        self.text((x, y + 9 * MM / 2), text, (HPos::Center, VPos::Top), FontTransform::None);
    }

    /// Draws the name of a y axis, rotated, at the edge of its column.
    pub(super) fn y_name(&mut self, (x, y): Point, text: &str) {
        self.text((x + MM / 2, y), text, (HPos::Center, VPos::Top), FontTransform::Rotate270);
    }

    fn text(&mut self, at: Point, text: &str, (h, v): (HPos, VPos), rotation: FontTransform) {
        // Plotters expects 1.24 times the text height as font size.
        let font = (FONT, f64::from(TEXT_HEIGHT) * 1.24).into_font().transform(rotation);
        let style = TextStyle::from(font).color(&FOREGROUND).pos(Pos::new(h, v));
        self.0.draw_text(text, &style, at).expect(INFALLIBLE);
    }

    fn path(&mut self, path: Vec<Point>, colour: RGBAColor, width: u32) {
        let style = ShapeStyle { color: colour, filled: false, stroke_width: width };
        self.0.draw_path(path, &style).expect(INFALLIBLE);
    }

    fn fill(&mut self, from: Point, to: Point, colour: RGBAColor) {
        let style = ShapeStyle { color: colour, filled: true, stroke_width: 0 };
        self.0.draw_rect(from, to, &style, true).expect(INFALLIBLE);
    }
}

/// Adds what plotters cannot write: the size on paper, round joins and dashes.
pub(super) fn finish_document(text: &str, (width, height): Point) -> String {
    let pixels = format!(r#"width="{width}" height="{height}""#);
    let tenths = |units: i32| f64::from(units * 10 / MM) / 10.0;
    let size = format!(r#"width="{}mm" height="{}mm" stroke-linejoin="round""#, tenths(width), tenths(height));
    let mut text = text.replacen(&pixels, &size, 1);
    for (stroke, dashes) in STROKES.iter().filter(|(_, dashes)| !dashes.is_empty()) {
        let stroke = format!(r#"stroke-width="{stroke}""#);
        text = text.replace(&stroke, &format!(r#"{stroke} stroke-dasharray="{dashes}""#));
    }
    text.replace(r#" opacity="1""#, "")
}
