//! Styles of the live view for this terminal: colours if it has them, otherwise shades and symbols.

use anstyle::{Ansi256Color, AnsiColor, Effects, RgbColor, Style};

/// Number of shades of the heat map.
pub(super) const SHADES: usize = 8;

/// The colours of cividis (Nuñez, Anderton and Renslow 2018), blue to yellow. People with any
/// colour vision see them as one scale from dark to light.
const CIVIDIS: [(u8, u8, u8); SHADES] = [
    (0, 44, 104),
    (43, 68, 110),
    (77, 92, 110),
    (108, 116, 120),
    (138, 140, 118),
    (174, 168, 106),
    (214, 197, 82),
    (254, 232, 56),
];

/// The nearest of 256 colours.
const INDEXED: [u8; SHADES] = [17, 24, 60, 243, 245, 143, 185, 227];

/// Colour support of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum ColourMode {
    /// No colours.
    Plain,
    /// 256 colours.
    Indexed,
    /// True colour.
    Full,
}

impl ColourMode {
    /// Chosen by the environment: `NO_COLOR` (no-color.org), `TERM` and `COLORTERM`.
    pub(super) fn of(no_color: Option<&str>, term: &str, colorterm: &str) -> Self {
        let is_without = ["dumb", "vt100", "vt102", "vt220", "vt320", "xterm-mono"].contains(&term)
            || term.ends_with("-m");
        if no_color.is_some_and(|value| !value.is_empty()) || is_without {
            Self::Plain
        } else if ["truecolor", "24bit"].contains(&colorterm) {
            Self::Full
        } else {
            Self::Indexed
        }
    }

    /// That of the terminal which this process has, by the environment.
    pub(in crate::cli) fn of_terminal() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        Self::of(
            variable("NO_COLOR").as_deref(),
            &variable("TERM").unwrap_or_default(),
            &variable("COLORTERM").unwrap_or_default(),
        )
    }

    /// Style of the mark of a verdict; `None` of another character, and without colours.
    pub(in crate::cli) fn mark(self, mark: char) -> Option<Style> {
        let colour = match mark {
            _ if self == Self::Plain => return None,
            '✓' => AnsiColor::Green,
            '✗' => AnsiColor::Red,
            '?' => AnsiColor::Yellow,
            _ => return None,
        };
        Some(colour.on_default().bold())
    }

    /// The symbol and style of a cell of the heat map; `level` from 0, the lowest, to [`SHADES`] -
    /// 1.
    pub(super) fn shade(self, level: usize) -> (&'static str, Style) {
        let level = level.min(SHADES - 1);
        let (red, green, blue) = CIVIDIS[level];
        match self {
            Self::Plain => (["░", "▒", "▓", "█"][level * 4 / SHADES], Style::new()),
            Self::Indexed => ("█", Ansi256Color(INDEXED[level]).on_default()),
            Self::Full => ("█", RgbColor(red, green, blue).on_default()),
        }
    }

    fn colour(self, colour: AnsiColor, otherwise: Effects) -> Style {
        if self == Self::Plain {
            Style::new().effects(otherwise)
        } else {
            colour.on_default()
        }
    }

    /// Style of a panel's name.
    pub(super) fn title(self) -> Style {
        self.colour(AnsiColor::Cyan, Effects::new()).bold()
    }

    /// Style of the most important text.
    pub(super) fn strong() -> Style {
        Style::new().bold()
    }

    /// Style of less important text.
    pub(super) fn faint() -> Style {
        Style::new().dimmed()
    }

    /// Style of a warning.
    pub(super) fn warning(self) -> Style {
        self.colour(AnsiColor::Yellow, Effects::INVERT).bold()
    }

    /// Style of bars.
    pub(super) fn bar(self) -> Style {
        self.colour(AnsiColor::Cyan, Effects::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_colours_gets_shades() {
        assert_eq!(
            ColourMode::of(Some("1"), "xterm-256color", "truecolor"),
            ColourMode::Plain
        );
        assert_eq!(
            ColourMode::of(Some(""), "xterm-256color", "truecolor"),
            ColourMode::Full
        );
        assert_eq!(ColourMode::of(None, "vt100", ""), ColourMode::Plain);
        assert_eq!(
            ColourMode::of(None, "screen-256color", ""),
            ColourMode::Indexed
        );
        assert_eq!(
            [0, 2, 4, 7, 99].map(|level| ColourMode::Plain.shade(level).0),
            ["░", "▒", "▓", "█", "█"]
        );
    }
}
