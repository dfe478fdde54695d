//! Profiles: clusters with names, in a file of the user.
//!
//! | file | what it has |
//! |---|---|
//! | `store.rs` | the file: where it is, how it is read and written |
//! | `profile.rs` | one cluster: properties, secrets from commands, protection |
//! | `import.rs` | profiles from the files of other clients |
//! | `guard.rs` | the protection: read-only profiles, the word to confirm |

pub mod guard;
mod import;
mod profile;
mod store;

pub use import::{FORMATS, import};
pub use profile::{Profile, REGISTRY_URL, is_registry_secret};
pub use store::{Store, chosen};
