//! Calls about the offsets and the records of partitions.

use std::time::Duration;

use ottla_core::{
    admin::{AdminCall, records::delete_records},
    error::{Error, ErrorKind, Result},
    offsets::list_offsets::{ListedOffset, OffsetQuery, OffsetSpec},
};

use ottla_protocol::vocabulary::TopicPartition;

use super::{
    Admin, AdminFuture, AdminOptions,
    elements::{Elements, Names},
};
use crate::topic_name::check_partition;

/// The records of a partition that [`Admin::delete_records`] deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordsToDelete {
    /// All records whose offset is lower.
    Before(i64),
    /// All records up to the high watermark.
    All,
}

impl Admin {
    /// Looks offsets up at the leaders of partitions.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::OffsetSpec;
    ///
    /// let yesterday = OffsetSpec::Timestamp(1_700_000_000_000);
    /// for found in admin.list_offsets(&[("orders", 0, yesterday)], Duration::from_secs(10))? {
    ///     println!("{:?}", found?.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_offsets(
        &self,
        partitions: &[(&str, i32, OffsetSpec)],
        options: impl Into<AdminOptions>,
    ) -> Result<Vec<Result<ListedOffset>>> {
        self.list_offsets_async(partitions, options).wait()
    }

    /// Looks offsets up, without blocking. See [`Admin::list_offsets`].
    pub fn list_offsets_async(
        &self,
        partitions: &[(&str, i32, OffsetSpec)],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<Vec<Result<ListedOffset>>> {
        let options = options.into();
        let check = |(topic, partition, spec): &&(&str, i32, OffsetSpec)| question(topic, *partition, *spec);
        Elements::new(partitions, check, |_, error| Err(error)).ask("list_offsets", |questions| {
            let query = OffsetQuery {
                questions,
                timeout: options.timeout,
                read_committed: options.read_committed,
                refusals: None,
            };
            let call = move |done| AdminCall::list_offsets(query, done);
            self.start("list_offsets", options.timeout, Ok(call))
        })
    }

    /// Deletes the oldest records of partitions, with one request to each of their leaders. The results are the lowest
    /// offsets that remain.
    ///
    /// # Errors
    ///
    /// The list of partitions is empty.
    pub fn delete_records(
        &self,
        partitions: &[(&str, i32, RecordsToDelete)],
        options: impl Into<AdminOptions>,
    ) -> Result<Vec<Result<i64>>> {
        self.delete_records_async(partitions, options).wait()
    }

    /// Deletes records, without blocking. See [`Admin::delete_records`].
    pub fn delete_records_async(
        &self,
        partitions: &[(&str, i32, RecordsToDelete)],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<Vec<Result<i64>>> {
        let options = options.into();
        self.delete_records_up_to(partitions, options, wire_offset)
    }

    /// Deletes the records before offsets that `offset` makes of the elements.
    pub(super) fn delete_records_up_to<R: Copy>(
        &self,
        partitions: &[(&str, i32, R)],
        options: AdminOptions,
        offset: impl Fn(&str, i32, R) -> Result<i64>,
    ) -> AdminFuture<Vec<Result<i64>>> {
        const NAME: &str = "delete_records";
        let mut names = Names::new();
        let check = |(topic, partition, records): &&(&str, i32, R)| {
            names.check_partition(topic, *partition)?;
            Ok((TopicPartition::new(*topic, *partition), offset(topic, *partition, *records)?))
        };
        Elements::new(partitions, check, |_, error| Err(error)).required("partitions").ask(NAME, |before| {
            let call = move |done| delete_records(before, options.timeout, done).done(options.how());
            self.start(NAME, options.timeout, Ok(call))
        })
    }
}

fn wire_offset(topic: &str, partition: i32, records: RecordsToDelete) -> Result<i64> {
    match records {
        RecordsToDelete::All => Ok(-1),
        RecordsToDelete::Before(offset) if offset >= 0 => Ok(offset),
        RecordsToDelete::Before(offset) => {
            let reason = format!("offset {offset}; use an offset of at least 0, or RecordsToDelete::All");
            Err(Error::new(ErrorKind::InvalidArgument, reason).with_partition(topic, partition))
        }
    }
}

/// Checks the arguments of a lookup of offsets.
pub(crate) fn offset_query(partitions: &[(&str, i32, OffsetSpec)], timeout: Duration) -> Result<OffsetQuery> {
    let questions = partitions.iter().map(|(topic, partition, spec)| question(topic, *partition, *spec));
    Ok(OffsetQuery {
        questions: questions.collect::<Result<_>>()?,
        timeout,
        read_committed: false,
        refusals: None,
    })
}

fn question(topic: &str, partition: i32, spec: OffsetSpec) -> Result<(TopicPartition, OffsetSpec)> {
    check_partition(topic, partition)?;
    if let OffsetSpec::Timestamp(millis) = spec
        && millis < 0
    {
        let reason = format!("timestamp {millis}; use milliseconds since 1970, at least 0");
        return Err(Error::new(ErrorKind::InvalidArgument, reason).with_partition(topic, partition));
    }
    Ok(((topic, partition).into(), spec))
}
