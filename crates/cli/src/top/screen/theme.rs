//! The colours of the terminal, or none.

use std::ffi::OsString;

use ratatui::style::{Color, Modifier, Style};

/// How a cell is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    Plain,
    /// A heading.
    Heading,
    /// The name of the view.
    Title,
    /// What is good to know.
    Muted,
    /// A value that is not current.
    Old,
    /// What somebody should look at.
    Warning,
    /// What is broken.
    Bad,
    /// A history.
    History,
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used.
    pub has_colours: bool,
    /// Whether only ASCII is drawn.
    pub is_ascii: bool,
}

impl Theme {
    /// Returns the theme for variables of the environment: NO_COLOR, and those of the locale.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Theme {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name));
        let is_utf8 = |locale: OsString| {
            let locale = locale.to_string_lossy().to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        };
        Theme {
            has_colours: set("NO_COLOR").is_none(),
            // Windows has no locale here, and its terminal shows Unicode.
            is_ascii: locale.map_or(!cfg!(windows), |locale| !is_utf8(locale)),
        }
    }

    /// Returns the style of a cell.
    pub fn style(self, emphasis: Emphasis) -> Style {
        let style = Style::new();
        let coloured = |color: Color, modifier: Modifier| match self.has_colours {
            true => style.fg(color),
            false => style.add_modifier(modifier),
        };
        match emphasis {
            Emphasis::Plain => style,
            Emphasis::Heading => style.add_modifier(Modifier::BOLD),
            Emphasis::Title => coloured(Color::Cyan, Modifier::BOLD).add_modifier(Modifier::BOLD),
            Emphasis::Muted | Emphasis::Old => coloured(Color::DarkGray, Modifier::DIM),
            Emphasis::Warning => coloured(Color::Yellow, Modifier::BOLD),
            Emphasis::Bad => coloured(Color::Red, Modifier::BOLD).add_modifier(Modifier::BOLD),
            Emphasis::History => coloured(Color::Green, Modifier::empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(variables: &[(&str, &str)]) -> Theme {
        Theme::new(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn no_color_leaves_weights_only() {
        let plain = theme(&[("NO_COLOR", "1"), ("LANG", "C.UTF-8")]);
        assert_eq!(plain, Theme { has_colours: false, is_ascii: false });
        for emphasis in [Emphasis::Bad, Emphasis::Old, Emphasis::Title, Emphasis::History] {
            assert_eq!(plain.style(emphasis).fg, None, "{emphasis:?}");
        }
        assert!(theme(&[("NO_COLOR", "")]).has_colours, "an empty variable is not set");
    }

    #[test]
    fn blocks_need_a_locale_with_utf_8() {
        assert!(!theme(&[("LANG", "de_DE.utf8")]).is_ascii);
        assert!(theme(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]).is_ascii);
        assert_eq!(theme(&[]).is_ascii, !cfg!(windows));
    }
}
