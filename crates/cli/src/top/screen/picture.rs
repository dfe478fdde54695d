//! The picture of `ottla top` in the README: the buffer of a test, as SVG.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use ratatui::{Terminal, backend::TestBackend};

use super::frame::draw;
use super::samples::model;
use super::state::{Key, State};
use super::theme::Theme;

const CELL_WIDTH: f64 = 8.4;
const CELL_HEIGHT: f64 = 17.0;
const MARGIN: f64 = 12.0;
const BACKGROUND: &str = "#1c2128";
const FOREGROUND: &str = "#cdd6e0";

/// Returns the buffer as an SVG of a few kilobytes.
fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) = (
        f64::from(area.width) * CELL_WIDTH + 2.0 * MARGIN,
        f64::from(area.height) * CELL_HEIGHT + 2.0 * MARGIN,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"ottla top\">\n<style>text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
         fill:{FOREGROUND};white-space:pre}}.b{{font-weight:bold}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let start = x;
            let style = buffer[(start, y)].style();
            let mut text = String::new();
            while x < area.width && buffer[(x, y)].style() == style {
                text.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            out.push_str(&run(&text, start, y, style));
        }
    }
    out + "</svg>\n"
}

/// One run of cells with the same style.
fn run(text: &str, x: u16, y: u16, style: ratatui::style::Style) -> String {
    let is_reversed = style.add_modifier.contains(Modifier::REVERSED);
    let is_underlined = style.add_modifier.contains(Modifier::UNDERLINED);
    if text.trim().is_empty() && !is_reversed && !is_underlined {
        return String::new();
    }
    let left = MARGIN + f64::from(x) * CELL_WIDTH;
    let base = MARGIN + f64::from(y) * CELL_HEIGHT;
    let width = text.chars().count() as f64 * CELL_WIDTH;
    let colour = colour(style.fg);
    let mut out = String::new();
    if is_reversed {
        out += &format!(
            "<rect x=\"{left:.1}\" y=\"{base:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{colour}\"/>\n"
        );
    }
    if is_underlined {
        let line = base + CELL_HEIGHT - 2.0;
        out += &format!("<path d=\"M{left:.1} {line:.1}h{width:.1}\" stroke=\"{colour}\" opacity=\".5\"/>\n");
    }
    let trimmed = text.trim_start();
    let left = left + (text.chars().count() - trimmed.chars().count()) as f64 * CELL_WIDTH;
    let trimmed = trimmed.trim_end();
    if trimmed.is_empty() {
        return out;
    }
    let bold = if style.add_modifier.contains(Modifier::BOLD) { " class=\"b\"" } else { "" };
    let fill = match (is_reversed, style.fg) {
        (true, _) => format!(" style=\"fill:{BACKGROUND}\""),
        (false, None | Some(Color::Reset)) => String::new(),
        (false, Some(_)) => format!(" style=\"fill:{colour}\""),
    };
    let escaped = trimmed.replace('&', "&amp;").replace('<', "&lt;");
    let length = trimmed.chars().count() as f64 * CELL_WIDTH;
    out + &format!(
        "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\"{bold}{fill}>{escaped}</text>\n",
        base + 13.0
    )
}

fn colour(colour: Option<Color>) -> &'static str {
    match colour {
        Some(Color::Red) => "#ff7b72",
        Some(Color::Yellow) => "#e3b341",
        Some(Color::Green) => "#56d364",
        Some(Color::Cyan) => "#76d9e6",
        Some(Color::DarkGray) => "#7d8794",
        _ => FOREGROUND,
    }
}

#[test]
fn picture_in_the_readme_is_what_top_draws() {
    let (model, mut state) = (model(), State::default());
    state.press(Key::Down, &model);
    let theme = Theme { has_colours: true, is_ascii: false };
    let mut terminal = Terminal::new(TestBackend::new(94, 14)).unwrap();
    terminal.draw(|frame| draw(&mut state, &model, theme, frame.buffer_mut())).unwrap();
    let picture = svg(terminal.backend().buffer());
    crate::pictures::compare("top.svg", &picture);
}
