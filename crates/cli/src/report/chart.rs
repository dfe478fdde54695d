//! One diagram as SVG, without scripts: axes, and lines or steps of several runs.

use std::fmt::Write;

use super::scale::{Scale, label};

/// The size of a chart in its own units; the page scales it.
pub const WIDTH: f64 = 560.0;
/// The height.
pub const HEIGHT: f64 = 250.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// The colours of the charts, for light and dark surroundings. `%` stands for the element that has them.
pub const STYLE: &str = "%{--ink:#1f2933;--muted:#5b6875;--grid:#dde3e9;--paper:#fff;--page:#f5f7f9;\
    --r0:#1f6feb;--r1:#c2410c;--r2:#15803d;--r3:#9333ea;--r4:#0e7490;--r5:#be185d}\
    @media(prefers-color-scheme:dark){%{--ink:#e3e9ef;--muted:#98a5b3;--grid:#333c46;--paper:#1a2027;--page:#11161b;\
    --r0:#6cb0ff;--r1:#ff9d5c;--r2:#5fd38a;--r3:#cf9bff;--r4:#5ad0e0;--r5:#ff85b3}}\
    .g{stroke:var(--grid);fill:none}.t{fill:var(--muted);font:12px system-ui,sans-serif}\
    .l{fill:none;stroke-width:1.8;stroke-linejoin:round}.d{stroke-dasharray:5 3}.a{stroke:none;opacity:.14}";

/// The number of colours.
pub const COLOURS: usize = 6;

/// A line or an outline.
#[derive(Clone, Debug)]
pub struct Series {
    /// The number of the run, which has its colour.
    pub run: usize,
    /// Whether it is dashed.
    pub is_dashed: bool,
    /// Places; a line has a gap where the second value is missing.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A diagram.
#[derive(Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The text below the horizontal axis.
    pub across: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// Whether a value lasts until the next one, as in a histogram.
    pub is_stepped: bool,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    /// Returns the diagram, without the element `svg` around it.
    pub fn body(&self) -> String {
        let mut out = String::new();
        self.axes(&mut out);
        for series in &self.series {
            let colour = series.run % COLOURS;
            let path = self.path(series);
            if path.is_empty() {
                continue;
            }
            if self.is_stepped {
                let _ = write!(out, "<path class=\"a\" fill=\"var(--r{colour})\" d=\"{path}\"/>");
            }
            let dashed = if series.is_dashed { " d" } else { "" };
            let _ = write!(out, "<path class=\"l{dashed}\" stroke=\"var(--r{colour})\" d=\"{path}\"/>");
        }
        out
    }

    /// Returns the diagram as an element of a page.
    pub fn svg(&self, number: usize) -> String {
        let title = escape(&self.title);
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\" data-chart=\"{number}\">{}</svg>",
            self.body()
        )
    }

    fn axes(&self, out: &mut String) {
        for value in self.y.ticks(4) {
            let y = self.down(value);
            let _ = write!(out, "<path class=\"g\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT);
            let _ = write!(
                out,
                "<text class=\"t\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                label(value)
            );
        }
        for value in self.x.ticks(6) {
            let x = self.across(value);
            let _ = write!(out, "<path class=\"g\" d=\"M{x:.1} {:.1}v5\"/>", HEIGHT - BOTTOM);
            let _ = write!(
                out,
                "<text class=\"t\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - BOTTOM + 18.0,
                label(value)
            );
        }
        let _ = write!(
            out,
            "<text class=\"t\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            HEIGHT - 4.0,
            escape(&self.across)
        );
    }

    fn across(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn down(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn path(&self, series: &Series) -> String {
        let mut path = String::new();
        let mut is_drawing = false;
        for (x, y) in &series.points {
            let Some(y) = y else {
                is_drawing = false;
                continue;
            };
            let (x, y) = (self.across(*x), self.down(*y));
            let _ = match (is_drawing, self.is_stepped) {
                (false, false) => write!(path, "M{x:.1} {y:.1}"),
                (false, true) => write!(path, "M{x:.1} {:.1}V{y:.1}", self.down(0.0)),
                (true, false) => write!(path, "L{x:.1} {y:.1}"),
                (true, true) => write!(path, "H{x:.1}V{y:.1}"),
            };
            is_drawing = true;
        }
        // A line with one point has no length and would not be seen.
        if series.points.iter().filter(|(_, y)| y.is_some()).count() == 1 && !self.is_stepped {
            path.push_str("h3");
        }
        path
    }
}

/// Returns a text that has no meaning to HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, Option<f64>)], is_stepped: bool) -> Chart {
        let series = Series { run: 7, is_dashed: false, points: points.to_vec() };
        Chart {
            title: "a <b>".into(),
            across: "seconds".into(),
            x: Scale::exact(10.0),
            y: Scale::linear(100.0, 4),
            is_stepped,
            series: vec![series],
        }
    }

    #[test]
    fn missing_values_are_gaps() {
        let with_gap =
            [(0.0, Some(0.0)), (2.0, Some(100.0)), (4.0, None), (6.0, Some(50.0)), (8.0, Some(50.0))];
        let svg = chart(&with_gap, false).svg(0);
        assert!(svg.contains("d=\"M58.0 210.0L154.0 12.0M346.0 111.0L442.0 111.0\""), "{svg}");
        assert!(svg.contains("aria-label=\"a &lt;b&gt;\"") && svg.contains("var(--r1)"), "{svg}");
    }

    #[test]
    fn histogram_is_an_outline_from_the_axis() {
        let svg = chart(&[(5.0, Some(100.0)), (10.0, Some(0.0))], true).svg(0);
        assert!(svg.contains("d=\"M298.0 210.0V12.0H538.0V210.0\""), "{svg}");
    }

    #[test]
    fn empty_and_extreme_values_stay_in_the_chart() {
        assert!(!chart(&[], false).svg(0).contains("class=\"l"));
        let svg = chart(&[(-5.0, Some(-1.0)), (1e300, Some(f64::INFINITY))], false).svg(0);
        assert!(svg.contains("d=\"M58.0 210.0L538.0 12.0\""), "{svg}");
    }
}
