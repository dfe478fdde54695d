//! The receive path.

pub mod coordinator;
pub mod fetcher;
pub mod shared;

/// To a broker's receiving half.
#[derive(Debug)]
pub struct FetchMail;
/// From a broker's receiving half.
#[derive(Debug)]
pub struct FetchReply;
/// From the application.
#[derive(Debug)]
pub struct FetchCommand;
