//! Passwords and keys: see [`Secret`].

pub use ottla_core::secret::Secret;
