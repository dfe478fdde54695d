//! `rd_kafka_t`: a producer or a consumer.
//!
//! The files build on each other in this order; only [`handle`] and [`topic`] depend on each other.
//!
//! | files | content |
//! |---|---|
//! | [`callbacks`], [`contexts`], [`property`], [`topic_conf`], [`conf`], [`chain`], [`plugins`] | configurations, with the application's functions and plug-ins |
//! | [`op`], [`event`], [`queue`], [`yielding`] | queue entries, and queues, which know only the address of their client |
//! | [`log`], [`interceptors`], [`queue_thread`], [`transport`], [`core`] | parts of a client |
//! | [`handle`], [`topic`] | the client, and its topics |
//! | [`create`], [`running`], [`destroy`] | the life of a client |
//! | [`serve`], [`sasl`], [`news`], [`logging`], [`debug`], [`intercept`], [`interceptor_observer`], [`background_events`] | callbacks, events, logs and interceptors |
//! | [`properties`], [`shown`], [`dump`], [`metadata`], [`fatal`], [`event_exports`], [`misc`] | functions of the interface |

pub(crate) mod background_events;
pub(crate) mod callbacks;
mod certificates;
pub(crate) mod chain;
pub(crate) mod conf;
pub(crate) mod contexts;
pub(crate) mod core;
pub(crate) mod create;
pub(crate) mod debug;
pub(crate) mod destroy;
pub(crate) mod dump;
pub(crate) mod event;
pub(crate) mod event_exports;
pub(crate) mod fatal;
pub(crate) mod handle;
pub(crate) mod intercept;
pub(crate) mod interceptor_observer;
pub(crate) mod interceptors;
pub(crate) mod log;
pub(crate) mod logging;
pub(crate) mod metadata;
pub(crate) mod misc;
pub(crate) mod news;
pub(crate) mod op;
pub(crate) mod plugins;
pub(crate) mod properties;
pub(crate) mod property;
pub(crate) mod queue;
pub(crate) mod queue_thread;
pub(crate) mod running;
pub(crate) mod sasl;
pub(crate) mod serve;
pub(crate) mod shown;
pub(crate) mod topic;
pub(crate) mod topic_conf;
pub(crate) mod transport;
pub(crate) mod yielding;
