//! Consuming.
//!
//! | file | content |
//! |---|---|
//! | [`consumer`] | the consumer behind a handle, and its end |
//! | [`assignment`] | the partitions of a consumer with a `group.id` |
//! | [`position`] | pause, resume, position, seek; [`offset_spec`] converts the interface's offsets |
//! | [`poll`] | messages from a queue |
//! | [`simple`] | the older calls, which name a topic and a partition |
//! | [`message`], [`owner`], [`fetched`], [`settle`] | messages in slabs, what each belongs to, how queues fill them, and the end of a call for several |
//! | [`event_message`] | the message of a fetch event |
//! | [`offsets`], [`commit`], [`store`] | offsets that the application stored or committed |
//! | [`offset_file`], [`offset_files`] | offsets that are kept in files |
//! | [`watermarks`] | the first and last offsets of partitions, and those of timestamps |

mod assignment;
mod commit;
pub(crate) mod consumer;
pub(crate) mod event_message;
pub(crate) mod fetched;
pub(crate) mod message;
pub(crate) mod offset_file;
mod offset_files;
mod offset_spec;
pub(crate) mod offsets;
pub(crate) mod owner;
mod poll;
mod position;
pub(crate) mod settle;
mod simple;
mod store;
mod watermarks;

pub(crate) use offset_spec::Places;
