//! The steps of the applications: the next call of each, and how it handles the results.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    cluster::command::Command,
    event::Event,
    group::shared::RebalanceKind,
    produce::{
        record::Record,
        transaction::{
            api::TransactionApi,
            error::{TransactionError, TransactionResult},
        },
    },
};

use super::{
    Run,
    application::{State, describe},
    ledger::{Label, Outcome, Sent, Transaction},
};
use crate::checkers::Broken;

/// The most records that an application takes or sends in a step.
const AT_ONCE: u64 = 10;

impl Run {
    pub(super) fn step(&mut self) -> Result<(), Broken> {
        let time = self.rng.jitter(Duration::from_millis(15), 90);
        self.world.run_until(self.world.now + time)?;
        let now = self.world.now;
        for (_, client, broker) in self.cut.extract_if(.., |(until, ..)| *until <= now).collect::<Vec<_>>() {
            self.world.partitioned.remove(&(client, broker));
        }
        for index in 0..self.applications.len() {
            self.step_application(index)?;
        }
        for reader in &mut self.readers {
            let commands = Arc::clone(&self.world.clients[reader.client].commands);
            reader.poll(now, &mut self.world.cluster, &self.ledger, &commands, &mut self.rng)?;
        }
        Ok(())
    }

    fn step_application(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.world.now;
        let application = &self.applications[index];
        if application.is_over() || application.frozen_until > now {
            return Ok(());
        }
        self.take_events(index);
        let application = &mut self.applications[index];
        let commands = Arc::clone(&self.world.clients[application.client].commands);
        if let Some(copier) = &mut application.copier {
            copier.poll(now, &commands);
        }
        if let Some((api, result)) = application.result(now) {
            self.handle(index, api, result)?;
        } else if let Some(api) = application.overdue(now) {
            let what = format!("producer {index}: {} has not returned after its timeout", api.name());
            return Err(Broken::new("calls", what));
        }
        let application = &self.applications[index];
        if !application.is_over() && !application.is_calling() {
            self.act(index);
        }
        Ok(())
    }

    /// Drops the events of a client: the results of calls contain everything that matters.
    fn take_events(&mut self, index: usize) {
        let application = &self.applications[index];
        while let Some(event) = self.world.clients[application.client].events.pop() {
            if let Event::Fatal(error) = event {
                self.world.trace.note(self.world.now, format_args!("{}: {error}", application.client));
            }
        }
    }

    /// Does the next thing.
    fn act(&mut self, index: usize) {
        let now = self.world.now;
        self.answer_rebalance(index);
        let begins = self.begins(self.applications[index].slot);
        let application = &mut self.applications[index];
        match application.state {
            State::Starting => application.call(now, TransactionApi::Init, None),
            State::Resting(until) if until <= now && begins => {
                application.state = State::Beginning;
                application.call(now, TransactionApi::Begin, None);
            }
            State::Beginning => application.call(now, TransactionApi::Begin, None),
            State::Working(left, until) if left > 0 => self.work(index, left, until),
            State::Working(_, until) if until <= now => self.end_work(index),
            State::SendingOffsets => {
                let offsets = application.copier.as_ref().and_then(|copier| copier.offsets());
                match offsets {
                    Some(offsets) => application.call(now, TransactionApi::SendOffsets, Some(offsets)),
                    None => self.abort(index),
                }
            }
            State::Committing => self.commit(index),
            State::Aborting => self.abort(index),
            State::Resting(_) | State::Working(..) | State::Failed | State::Gone => {}
        }
    }

    /// Responds to a change of the assignment: at once if no transaction is open, and after an abort or a commit if
    /// partitions are revoked.
    fn answer_rebalance(&mut self, index: usize) {
        let application = &mut self.applications[index];
        let commands = Arc::clone(&self.world.clients[application.client].commands);
        let Some(copier) = &mut application.copier else { return };
        let Some(kind) = copier.question() else { return };
        if kind == RebalanceKind::Assign || application.transaction.is_none() {
            return copier.answer(&commands);
        }
        let State::Working(_, until) = application.state else { return };
        let may_commit = kind == RebalanceKind::Revoke && self.rng.chance(1, 2);
        application.state =
            if may_commit { State::Working(0, until.min(self.world.now)) } else { State::Aborting };
    }

    /// Sends some records of the transaction, or copies some.
    fn work(&mut self, index: usize, left: u64, until: ottla_core::machine::Instant) {
        let count = left.min(1 + self.rng.below(AT_ONCE));
        let application = &mut self.applications[index];
        let Some(transaction) = application.transaction else { return };
        let mut sent = 0;
        let mut refused = false;
        if let Some(mut copier) = application.copier.take() {
            let mut sources = Vec::new();
            let bytes = [1, 2_000][self.rng.below(2) as usize];
            copier.take(bytes, |partition, offset| sources.push((partition, offset)));
            self.applications[index].copier = Some(copier);
            let client = self.applications[index].client;
            if !sources.is_empty() {
                self.world.trace.note(self.world.now, format_args!("{client} copies {sources:?}"));
            }
            for source in &sources {
                refused |= !self.send(index, transaction, Some(*source));
            }
            // All that was taken must be copied; an empty queue ends the transaction.
            sent = if sources.is_empty() { left } else { (sources.len() as u64).min(left) };
        } else {
            while sent < count && !refused {
                refused = !self.send(index, transaction, None);
                sent += 1;
            }
        }
        let application = &mut self.applications[index];
        application.state = State::Working(left - sent, until);
        if refused {
            // The transaction has failed. A commit must notice that, too; a copier aborts.
            let commits = application.copier.is_none() && self.rng.chance(1, 2);
            application.state = if commits { State::Committing } else { State::Aborting };
        }
    }

    /// Sends a record. Returns false if it was refused.
    fn send(&mut self, index: usize, transaction: usize, source: Option<(i32, i64)>) -> bool {
        let is_copy = source.is_some();
        let topics = self.setup.topics.len() as u64;
        // Without copiers nothing distinguishes the input.
        let topic = match (is_copy, self.setup.copiers) {
            (true, _) => 1 + self.rng.below(topics - 1),
            (false, 0) => self.rng.below(topics),
            (false, _) => 0,
        };
        let (name, partitions) = &self.setup.topics[topic as usize];
        let place = (topic as u32, self.rng.below(*partitions as u64) as i32);
        let application = &mut self.applications[index];
        let (topic, is_new) = application.producer.topic(name);
        let commands = &self.world.clients[application.client].commands;
        if is_new {
            commands.push(Command::Topic(Arc::clone(&topic)));
        }
        let number = application.sent;
        let (producer, id) = (index as u32, transaction as u32);
        let label = Label { producer, number, place, transaction: id, source };
        let value = label.to_value(self.rng.below(100) as usize);
        let record = Record::new().value(&value).partition(place.1).opaque(number);
        if application.producer.send(&topic, self.world.now, 0, &record, None).is_err() {
            return false;
        }
        application.sent += 1;
        self.summary.records += 1;
        self.ledger.transactions[transaction].records.push(Sent { place, number });
        true
    }

    /// Ends the transaction as the application has planned.
    fn end_work(&mut self, index: usize) {
        let aborts = self.rng.chance(self.setup.manners.abort_percent, 100);
        let application = &mut self.applications[index];
        application.state = match (aborts, &application.copier) {
            (true, _) => State::Aborting,
            (false, Some(_)) => State::SendingOffsets,
            (false, None) => State::Committing,
        };
        self.act(index);
    }

    fn commit(&mut self, index: usize) {
        let application = &mut self.applications[index];
        application.state = State::Committing;
        if let Some(transaction) = application.transaction {
            self.ledger.transactions[transaction].is_asked = true;
        }
        application.call(self.world.now, TransactionApi::Commit, None);
    }

    fn abort(&mut self, index: usize) {
        let application = &mut self.applications[index];
        application.state = State::Aborting;
        application.call(self.world.now, TransactionApi::Abort, None);
    }

    // ---- results

    fn handle(&mut self, index: usize, api: TransactionApi, result: TransactionResult) -> Result<(), Broken> {
        let now = self.world.now;
        let text = result.as_ref().map_or_else(describe, |()| "done".to_owned());
        let client = self.applications[index].client;
        self.world.trace.note(now, format_args!("{client}: {} {text}", api.name()));
        match (api, result) {
            (_, Err(TransactionError::Fatal(error))) => self.fail(index, api, &error),
            (_, Err(TransactionError::Refused(error))) => {
                let state = self.applications[index].state;
                let what = format!("producer {index} in {state:?}: {} is refused: {error}", api.name());
                Err(Broken::new("calls", what))
            }
            (api, Err(TransactionError::Retriable(_))) => {
                self.summary.timeouts += 1;
                // An application that can't add its offsets may give up.
                if api == TransactionApi::SendOffsets && self.rng.chance(1, 2) {
                    self.applications[index].state = State::Aborting;
                }
                Ok(())
            }
            (TransactionApi::Commit | TransactionApi::SendOffsets, Err(TransactionError::Abort(_))) => {
                self.note_outcome(index, Outcome::NotCommitted);
                self.applications[index].state = State::Aborting;
                Ok(())
            }
            (_, Err(TransactionError::Abort(error))) => {
                let what = format!("producer {index}: {} requires an abort: {error}", api.name());
                Err(Broken::new("calls", what))
            }
            (_, Ok(())) => {
                self.succeed(index, api);
                Ok(())
            }
        }
    }

    /// A call succeeded.
    fn succeed(&mut self, index: usize, api: TransactionApi) {
        let now = self.world.now;
        match api {
            TransactionApi::Init => {
                let ends = self.log_ends();
                self.fences.push((index, ends));
                let application = &mut self.applications[index];
                application.ready = Some(now);
                application.identity = application.producer.identity.get().map(|it| (it.id, it.epoch));
                self.rest(index);
            }
            TransactionApi::Begin => {
                self.world.wire.transactions.begin(self.applications[index].client);
                self.applications[index].transaction = Some(self.ledger.transactions.len());
                self.ledger.transactions.push(Transaction {
                    producer: index,
                    begun: now,
                    records: Vec::new(),
                    is_asked: false,
                    outcome: Outcome::Open,
                });
                self.summary.transactions += 1;
                let manners = self.applications[index].manners;
                let thinks = Duration::from_millis(self.rng.below(manners.thinks.as_millis() as u64 + 1));
                let records = 1 + self.rng.below(manners.records);
                self.applications[index].state = State::Working(records, now + thinks);
            }
            TransactionApi::SendOffsets => self.applications[index].state = State::Committing,
            TransactionApi::Commit => {
                self.note_outcome(index, Outcome::Committed);
                self.summary.committed += 1;
                let application = &mut self.applications[index];
                let begun = application.transaction.map(|it| self.ledger.transactions[it].begun);
                let is_calm = self.healed.zip(begun).is_some_and(|(healed, begun)| begun >= healed);
                application.calm_commits += u64::from(is_calm);
                self.end_transaction(index, true);
            }
            TransactionApi::Abort => {
                self.note_outcome(index, Outcome::NotCommitted);
                self.summary.aborted += 1;
                self.end_transaction(index, false);
            }
        }
    }

    fn note_outcome(&mut self, index: usize, outcome: Outcome) {
        if let Some(transaction) = self.applications[index].transaction {
            self.ledger.transactions[transaction].outcome = outcome;
        }
    }

    fn end_transaction(&mut self, index: usize, is_committed: bool) {
        let application = &mut self.applications[index];
        application.transaction = None;
        let commands = Arc::clone(&self.world.clients[application.client].commands);
        if let Some(copier) = &mut application.copier {
            copier.end(is_committed, &commands);
        }
        self.rest(index);
    }

    fn rest(&mut self, index: usize) {
        let rests = self.applications[index].manners.rests.as_millis() as u64;
        let until = self.world.now + Duration::from_millis(self.rng.below(rests + 1));
        self.applications[index].state = State::Resting(until);
    }

    /// A producer failed for good.
    fn fail(
        &mut self,
        index: usize,
        api: TransactionApi,
        error: &ottla_core::error::Error,
    ) -> Result<(), Broken> {
        self.check_fatal(index, api, error)?;
        self.summary.fenced += 1;
        let application = &mut self.applications[index];
        self.summary.uncertain += u64::from(application.transaction.is_some());
        application.state = State::Failed;
        application.ended = Some(self.world.now);
        self.world.clients[application.client].commands.push(Command::Close { timeout: Duration::ZERO });
        Ok(())
    }

    // ---- the life of instances

    /// Starts an instance for each `transactional.id` without one.
    pub(super) fn replace_failed(&mut self) {
        for slot in 0..self.setup.producers + self.setup.copiers {
            let mut own = self.applications.iter().filter(|application| application.slot == slot);
            if own.all(|application| application.is_over()) {
                self.start(slot);
            }
        }
    }

    /// Returns true if an instance of the slot has committed a transaction since the faults ended.
    pub(super) fn has_recovered(&self, slot: usize) -> bool {
        let mut own = self.applications.iter().filter(|application| application.slot == slot);
        own.any(|application| application.calm_commits > 0)
    }

    /// Returns true if an application of this slot begins further transactions.
    fn begins(&self, slot: usize) -> bool {
        match self.stage {
            0 => true,
            1 => slot >= self.setup.producers,
            _ => false,
        }
    }
}
