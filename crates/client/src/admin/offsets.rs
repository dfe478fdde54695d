//! Calls about the offsets and the records of partitions.

use std::time::Duration;

use ottla_core::{
    admin::{AdminCall, records::delete_records},
    error::{Error, ErrorKind, Result},
    fetch::offsets::{ListedOffset, OffsetQuery, OffsetSpec},
};

use super::{Admin, AdminFuture, AdminOptions, calls::distinct};
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
        let call = offset_query(partitions, options.timeout).map(|query| {
            let query = OffsetQuery { read_committed: options.read_committed, ..query };
            move |done| AdminCall::list_offsets(query, done)
        });
        self.start("list_offsets", options.timeout, call)
    }

    /// Deletes the oldest records of partitions, with one request to each of their leaders. The results are the lowest
    /// offsets that remain.
    ///
    /// Error: there is no partition, or one is named twice.
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
        let partitions: Result<Vec<(&str, i32, i64)>> = partitions
            .iter()
            .map(|(topic, partition, records)| {
                Ok((*topic, *partition, wire_offset(topic, *partition, *records)?))
            })
            .collect();
        match partitions {
            Ok(partitions) => self.delete_records_before(&partitions, options),
            Err(error) => AdminFuture::failed("delete_records", error),
        }
    }

    /// Deletes records before offsets, -1 for the high watermark.
    pub(super) fn delete_records_before(
        &self,
        partitions: &[(&str, i32, i64)],
        options: AdminOptions,
    ) -> AdminFuture<Vec<Result<i64>>> {
        let keys = distinct(partitions.iter().map(|(topic, partition, _)| (*topic, *partition)));
        let call = keys.map(|keys| {
            let before = keys.into_iter().zip(partitions.iter().map(|(_, _, before)| *before)).collect();
            move |done| delete_records(before, options.timeout, done).done(options.how())
        });
        self.start("delete_records", options.timeout, call)
    }
}

fn wire_offset(topic: &str, partition: i32, records: RecordsToDelete) -> Result<i64> {
    check_partition(topic, partition)?;
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
    let questions = partitions.iter().map(|(topic, partition, spec)| {
        check_partition(topic, *partition)?;
        if let OffsetSpec::Timestamp(millis) = spec
            && *millis < 0
        {
            let reason = format!("timestamp {millis}; use milliseconds since 1970, at least 0");
            let error = Error::new(ErrorKind::InvalidArgument, reason);
            return Err(error.with_partition(*topic, *partition));
        }
        Ok(((*topic, *partition).into(), *spec))
    });
    Ok(OffsetQuery {
        questions: questions.collect::<Result<_>>()?,
        timeout,
        read_committed: false,
        refusals: None,
    })
}
