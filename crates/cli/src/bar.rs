//! The bar or line at the bottom of a terminal: drawn by indicatif, or, without that feature, nothing.

#[cfg(not(feature = "indicatif"))]
pub use absent::Bar;
#[cfg(feature = "indicatif")]
pub use drawn::Bar;

#[cfg(feature = "indicatif")]
mod drawn {
    use std::io::{self, IsTerminal};

    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

    /// A bar or a line. Clones are the same one.
    #[derive(Clone, Debug)]
    pub struct Bar(ProgressBar);

    impl Bar {
        /// A line with a text.
        pub fn line() -> Option<Self> {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr());
            Some(Self(bar))
        }

        /// A bar, hidden unless standard error is a terminal.
        pub fn of(total: u64) -> Self {
            let target = match io::stderr().is_terminal() {
                true => ProgressDrawTarget::stderr(),
                false => ProgressDrawTarget::hidden(),
            };
            let bar = ProgressBar::with_draw_target(Some(total), target);
            let style = "{bar:40} {human_pos} of {human_len}, {per_sec}, {eta} left {msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            Self(bar)
        }

        /// Replaces the text of a line.
        pub fn say(&self, text: String) {
            self.0.set_message(text);
            self.0.tick();
        }

        /// Moves a bar, and replaces the text behind it.
        pub fn move_to(&self, position: u64, text: String) {
            self.0.set_message(text);
            self.0.set_position(position);
        }

        /// Whether nothing is drawn.
        pub fn is_hidden(&self) -> bool {
            self.0.is_hidden()
        }

        /// Runs `print` while the bar is away.
        pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
            self.0.suspend(print)
        }

        /// Removes it.
        pub fn clear(&self) {
            self.0.finish_and_clear();
        }
    }
}

#[cfg(not(feature = "indicatif"))]
mod absent {
    /// Nothing.
    #[derive(Clone, Debug)]
    pub struct Bar;

    impl Bar {
        /// Returns `None`: without the feature no line is drawn.
        pub fn line() -> Option<Self> {
            None
        }

        /// A bar that is always hidden.
        pub fn of(_total: u64) -> Self {
            Self
        }

        /// Does nothing.
        pub fn say(&self, _text: String) {}

        /// Does nothing.
        pub fn move_to(&self, _position: u64, _text: String) {}

        /// Nothing is drawn.
        pub fn is_hidden(&self) -> bool {
            true
        }

        /// Runs `print`.
        pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
            print()
        }

        /// Does nothing.
        pub fn clear(&self) {}
    }
}
