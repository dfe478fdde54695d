//! `cargo xtask threads --broken`: mistakes made on purpose where threads meet, each of which a model has to notice.
//!
//! A break replaces a piece of the code by a wrong one, in a copy of the tree. The model that is there for it is run on the
//! copy, and has to fail. [`BREAKS`] is the list; a unit test says when the code has moved away under it.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

use crate::{
    Result,
    shell::{self, root},
    threads,
};

/// A mistake, and the model that has to notice it.
struct Break {
    /// The model's name.
    model: &'static str,
    /// What is wrong, in words.
    what: &'static str,
    /// The file, within `crates`.
    file: &'static str,
    /// What is replaced, which stands there once, and what comes in its place.
    pieces: &'static [(&'static str, &'static str)],
}

/// How long a model may take on broken code, with the time to compile it.
const DEADLINE: Duration = Duration::from_secs(900);

/// Tries all breaks, or those whose model or description has `name` in it.
pub fn run(name: Option<&str>) -> Result<ExitCode> {
    let chosen = |it: &&Break| name.is_none_or(|name| it.model.contains(name) || it.what.contains(name));
    let breaks: Vec<&Break> = BREAKS.iter().filter(chosen).collect();
    if breaks.is_empty() {
        return Err("no break is named like that".into());
    }
    let copy = Copy::new()?;
    let mut blind = 0;
    for it in &breaks {
        let outcome = copy.attempt(it)?;
        blind += usize::from(outcome.is_err());
        let (Ok(told) | Err(told)) = &outcome;
        println!(
            "{:10} {}: {}: {told}",
            if outcome.is_ok() { "noticed" } else { "UNNOTICED" },
            it.model,
            it.what
        );
    }
    println!("{} of {} breaks noticed", breaks.len() - blind, breaks.len());
    Ok(if blind == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tree again, to be broken.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn new() -> Result<Self> {
        let folder = threads::target("loom-broken-tree")?;
        let files = shell::read(
            Command::new("git").args(["ls-files", "-co", "--exclude-standard", "-z"]).current_dir(root()),
        )?;
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let (from, to) = (root().join(file), folder.join(file));
            // Only what changed, so that cargo builds only that. Files that are gone and links are nothing of ours.
            let Ok(contents) = fs::read(&from) else { continue };
            if fs::read(&to).is_ok_and(|known| known == contents) {
                continue;
            }
            fs::create_dir_all(to.parent().unwrap_or(&folder))?;
            fs::write(to, contents)?;
        }
        Ok(Self { folder })
    }

    /// What the model said when it failed; an error when it did not.
    fn attempt(&self, it: &Break) -> Result<std::result::Result<String, String>> {
        let path = self.folder.join("crates").join(it.file);
        let right = fs::read_to_string(&path)?;
        fs::write(&path, broken(it, &right)?)?;
        let done = threads::models_of(&self.folder, it.package(), it.model)
            .and_then(|mut command| shell::run(&mut command, DEADLINE, false));
        fs::write(&path, right)?;
        let done = done?;
        if !done.output.contains("running 1 test") {
            return Err(
                format!("{}: {}: not run:\n{}\n{}", it.model, it.what, done.output, done.ending).into()
            );
        }
        if done.success {
            return Ok(Err("the model passed".to_owned()));
        }
        Ok(Ok(why(&done.output)))
    }
}

impl Break {
    fn package(&self) -> &'static str {
        if self.file.starts_with("net/") { "ottla-net" } else { "ottla-core" }
    }
}

/// The file with the mistake.
fn broken(it: &Break, right: &str) -> Result<String> {
    let mut code = right.to_owned();
    for (right, wrong) in it.pieces {
        let count = code.matches(right).count();
        if count != 1 {
            let what = it.what;
            return Err(
                format!("{}: what is to be broken ({what}) stands there {count} times", it.file).into()
            );
        }
        code = code.replace(right, wrong);
    }
    Ok(code)
}

/// The line behind `thread ... panicked at ...`.
fn why(output: &str) -> String {
    let panicked = output.lines().skip_while(|line| !line.contains(" panicked at ")).nth(1);
    panicked.unwrap_or("the test ended in another way").chars().take(100).collect()
}

#[rustfmt::skip]
const BREAKS: &[Break] = &[
    Break {
        model: "nothing_from_before_a_seek_comes_after_it_and_the_position_stands",
        what: "the version is raised before the queue's lock is taken",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"        let outdated = {
            let mut state = self.state.lock();
            if !wanted(handle.version()) {
                return None;
            }
            let handed_out = handle.position();
            let version = handle.bump_version(position);
", r"        let outdated = {
            if !wanted(handle.version()) {
                return None;
            }
            let handed_out = handle.position();
            let version = handle.bump_version(position);
            let mut state = self.state.lock();
")],
    },
    Break {
        model: "nothing_from_before_a_seek_comes_after_it_and_the_position_stands",
        what: "what is pushed is handed out whatever its version is",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"                    item if item.is_stale() && !self.mutation.is(Mutant::DeliverAfterSeek) => {
                        self.drop_item(item, &mut wakes)
                    }
                    item if item.is_paused() &&", r"                    item if item.is_paused() &&")],
    },
    Break {
        model: "nothing_from_before_a_seek_comes_after_it_and_the_position_stands",
        what: "what is out of date is looked for before the version is raised",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"            let version = handle.bump_version(position);
            let state = &mut *state;
            for items in [&mut state.items, &mut state.aside] {
                for item in std::mem::take(items) {
                    if item.is_stale() && !self.mutation.is(Mutant::DeliverAfterSeek) {
                        self.drop_item(item, &mut wakes);
                    } else {
                        items.push_back(item);
                    }
                }
            }
", r"            let state = &mut *state;
            for items in [&mut state.items, &mut state.aside] {
                items.clear();
            }
            let version = handle.bump_version(position);
")],
    },
    Break {
        model: "nothing_from_before_a_seek_comes_after_it_and_the_position_stands",
        what: "what vanishes gives its room back twice",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"            records.handle.count_dropped(records.messages);
            self.release(records, wakes);", r"            records.handle.count_dropped(records.messages);
            self.release(records, wakes);
            self.release(records, wakes);")],
    },
    Break {
        model: "nothing_from_before_a_seek_comes_after_it_and_the_position_stands",
        what: "the version is raised and the position is not set",
        file: "core/src/fetch/partition.rs",
        pieces: &[(r"        self.position.store(position, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel) + 1", r"        let _ = position;
        self.version.fetch_add(1, Ordering::AcqRel) + 1")],
    },
    Break {
        model: "records_that_waited_for_the_topic_come_before_those_that_did_not",
        what: "the number of partitions is published before the records that waited are appended",
        file: "core/src/produce/topic.rs",
        pieces: &[(r"        with_waiting(std::mem::take(&mut waiting.records));
        self.partition_count.store(count.max(known), Ordering::Release);", r"        self.partition_count.store(count.max(known), Ordering::Release);
        with_waiting(std::mem::take(&mut waiting.records));")],
    },
    Break {
        model: "records_that_waited_for_the_topic_come_before_those_that_did_not",
        what: "a record waits although the partitions became known before the lock was taken",
        file: "core/src/produce/topic.rs",
        pieces: &[(r"        if !matches!(self.state(), TopicState::Unknown) {
            return Ok(false);
        }
        waiting.records.push(record());", r"        waiting.records.push(record());")],
    },
    Break {
        model: "records_that_waited_for_the_topic_come_before_those_that_did_not",
        what: "the records that waited are taken, and the lock is given back before they are appended",
        file: "core/src/produce/topic.rs",
        pieces: &[(r"        with_waiting(std::mem::take(&mut waiting.records));
        self.partition_count.store(count.max(known), Ordering::Release);", r"        let records = std::mem::take(&mut waiting.records);
        drop(waiting);
        with_waiting(records);
        let mut waiting = self.waiting.lock();
        self.partition_count.store(count.max(known), Ordering::Release);")],
    },
    Break {
        model: "records_that_waited_for_the_topic_come_before_those_that_did_not",
        what: "the number is looked at before the lock is taken, and not again",
        file: "core/src/produce/topic.rs",
        pieces: &[(r"        let mut waiting = self.waiting.lock();
        if let Some(error) = &waiting.error {
            return Err(error.clone());
        }
        if !matches!(self.state(), TopicState::Unknown) {
            return Ok(false);
        }", r"        if !matches!(self.state(), TopicState::Unknown) {
            return Ok(false);
        }
        let mut waiting = self.waiting.lock();
        if let Some(error) = &waiting.error {
            return Err(error.clone());
        }")],
    },
    Break {
        model: "a_delivery_is_told_its_fate_even_through_the_batch_that_it_got_into_late",
        what: "`poll` looks and registers under two locks",
        file: "core/src/produce/report.rs",
        pieces: &[(r"        let waker = context.waker();
        if !state.wakers.iter()", r"        drop(state);
        let mut state = self.state.lock();
        let waker = context.waker();
        if !state.wakers.iter()")],
    },
    Break {
        model: "a_delivery_is_told_its_fate_even_through_the_batch_that_it_got_into_late",
        what: "`forward` looks and leaves its wish under two locks",
        file: "core/src/produce/report.rs",
        pieces: &[(r"        let state = &mut *self.state.lock();
        match state.outcomes.iter().find(|(range, _)| range.contains(&index)) {
            Some((range, outcome)) => {
                outer.complete(outer_index..outer_index + 1, outcome.at(index - range.start));
            }
            None => state.forwards.push((index, Arc::clone(outer), outer_index)),
        }", r"        let known = {
            let state = self.state.lock();
            let found = state.outcomes.iter().find(|(range, _)| range.contains(&index));
            found.map(|(range, outcome)| outcome.at(index - range.start))
        };
        match known {
            Some(outcome) => outer.complete(outer_index..outer_index + 1, outcome),
            None => self.state.lock().forwards.push((index, Arc::clone(outer), outer_index)),
        }")],
    },
    Break {
        model: "a_delivery_is_told_its_fate_even_through_the_batch_that_it_got_into_late",
        what: "`complete` sends on under one lock and says what it knows under another",
        file: "core/src/produce/report.rs",
        pieces: &[(r"            state.outcomes.push((records, outcome));
            std::mem::take(&mut state.wakers)
        };", r"            Vec::<Waker>::new()
        };
        drop(wakers);
        let wakers = {
            let state = &mut *self.state.lock();
            state.outcomes.push((records, outcome));
            std::mem::take(&mut state.wakers)
        };")],
    },
    Break {
        model: "a_delivery_is_told_its_fate_even_through_the_batch_that_it_got_into_late",
        what: "`complete` takes the wakers before it says what it knows",
        file: "core/src/produce/report.rs",
        pieces: &[(r"        let wakers = {
            let state = &mut *self.state.lock();
            for (index, outer, place)", r"        let wakers = std::mem::take(&mut self.state.lock().wakers);
        let _ = {
            let state = &mut *self.state.lock();
            for (index, outer, place)")],
    },
    Break {
        model: "a_delivery_is_told_its_fate_even_through_the_batch_that_it_got_into_late",
        what: "who waits for what is sent on is told the offset of another record",
        file: "core/src/produce/report.rs",
        pieces: &[(r"                outer.complete(place..place + 1, outcome.at(index - records.start));", r"                outer.complete(place..place + 1, outcome.at(records.start));
                let _ = index;")],
    },
    Break {
        model: "a_letter_to_a_thread_that_falls_asleep_is_read",
        what: "`sleep` looks for letters before it says that it sleeps",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        self.state.swap(SLEEPING, Ordering::SeqCst);
        let may_block = self.letters.lock().is_empty();", r"        let may_block = self.letters.lock().is_empty();
        self.state.swap(SLEEPING, Ordering::SeqCst);")],
    },
    Break {
        model: "a_letter_to_a_thread_that_falls_asleep_is_read",
        what: "`sleep` doesn't look for letters",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        let may_block = self.letters.lock().is_empty();", r"        let may_block = true;")],
    },
    Break {
        model: "a_letter_to_a_thread_that_falls_asleep_is_read",
        what: "`post` looks whether the thread sleeps before the letter is in the box",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        self.letters.lock().push(letter);
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING {
            self.waker.wake();
        }", r"        let sleeps = self.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING;
        self.letters.lock().push(letter);
        if sleeps {
            self.waker.wake();
        }")],
    },
    Break {
        model: "a_letter_to_a_thread_that_falls_asleep_is_read",
        what: "`post` wakes only a thread that was told nothing since it ran",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        if self.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING {
            self.waker.wake();
        }", r"        if self.state.load(Ordering::SeqCst) == SLEEPING && self.letters.lock().len() == 1 {
            self.waker.wake();
        }")],
    },
    Break {
        model: "a_letter_to_a_thread_that_falls_asleep_is_read",
        what: "`post` says that the thread is told without waking it",
        file: "net/src/mailbox.rs",
        pieces: &[(r"            self.waker.wake();
        }
    }

    /// Takes all letters.", r"        }
    }

    /// Takes all letters.")],
    },
    Break {
        model: "what_is_done_before_waking_an_owner_is_seen_by_it",
        what: "an owner's wake-ups are never open again",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        pending.swap(false, Ordering::SeqCst);", r"        let _ = pending;")],
    },
    Break {
        model: "what_is_done_before_waking_an_owner_is_seen_by_it",
        what: "an owner is opened without seeing what its last waker did",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        pending.swap(false, Ordering::SeqCst);", r"        pending.store(false, Ordering::Relaxed);")],
    },
    Break {
        model: "what_is_done_before_waking_an_owner_is_seen_by_it",
        what: "an owner looks first and is open to wake-ups afterwards",
        file: "net/src/mailbox.rs",
        pieces: &[(r"                OwnerWaker::open(&pending);
                work.load(Ordering::Relaxed) == 2", r"                let done = work.load(Ordering::Relaxed) == 2;
                OwnerWaker::open(&pending);
                done")],
    },
    Break {
        model: "what_is_done_before_waking_an_owner_is_seen_by_it",
        what: "who wakes says so before what it did can be seen",
        file: "net/src/mailbox.rs",
        pieces: &[(r"        if !self.pending.swap(true, Ordering::SeqCst) {", r"        if !self.pending.swap(true, Ordering::Relaxed) {")],
    },
    Break {
        model: "a_blocked_sender_is_woken_by_the_report_that_makes_room",
        what: "`poll_send` doesn't try again after registering",
        file: "core/src/produce/shared.rs",
        pieces: &[(r"        for registered in [false, true] {", r"        for registered in [false] {")],
    },
    Break {
        model: "a_blocked_sender_is_woken_by_the_report_that_makes_room",
        what: "`release` looks for waiters before it gives back",
        file: "core/src/produce/budget.rs",
        pieces: &[(r"        self.used.fetch_sub(((messages as u64) << BYTES_BITS) + bytes, Ordering::SeqCst);
        if self.has_waiters.load(Ordering::SeqCst) {", r"        let has_waiters = self.has_waiters.load(Ordering::SeqCst);
        self.used.fetch_sub(((messages as u64) << BYTES_BITS) + bytes, Ordering::SeqCst);
        if has_waiters {")],
    },
    Break {
        model: "a_refused_attempt_hides_no_room_from_a_blocked_sender",
        what: "`try_charge` charges first and takes it back when it was too much",
        file: "core/src/produce/budget.rs",
        pieces: &[(r"        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let (messages, used_bytes) = (used >> BYTES_BITS, used & BYTES_MASK);
            let fits = used_bytes + bytes as u64 <= self.max_bytes || messages == 0;
            if messages >= self.max_messages || !fits {
                return false;
            }
            // Nothing is charged that may have to be taken back: whoever looked meanwhile would wait for room that is there.
            let charged = used + ONE_MESSAGE + bytes as u64;
            match self.used.compare_exchange_weak(used, charged, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => used = changed,
            }
        }", r"        let used = self.used.fetch_add(ONE_MESSAGE + bytes as u64, Ordering::SeqCst);
        let (messages, used_bytes) = (used >> BYTES_BITS, used & BYTES_MASK);
        let fits = used_bytes + bytes as u64 <= self.max_bytes || messages == 0;
        if messages >= self.max_messages || !fits {
            self.used.fetch_sub(ONE_MESSAGE + bytes as u64, Ordering::SeqCst);
            return false;
        }
        true")],
    },
    Break {
        model: "a_flush_ends_with_the_last_report_whatever_is_refused_meanwhile",
        what: "a flush that finds the queue empty and then not empty sleeps unregistered",
        file: "core/src/produce/shared.rs",
        pieces: &[(r"        if !self.settings.mutation.is(Mutant::LoseFlush) {
            self.budget.register(context.waker());
        }
        if self.budget.messages() == 0 { Poll::Ready(()) } else { Poll::Pending }", r"        if self.budget.messages() != 0 {
            self.budget.register(context.waker());
        }
        if self.budget.messages() == 0 { Poll::Ready(()) } else { Poll::Pending }")],
    },
    Break {
        model: "no_more_is_in_the_queue_than_there_is_room_for",
        what: "`try_charge` looks and charges in two steps",
        file: "core/src/produce/budget.rs",
        pieces: &[(r"            match self.used.compare_exchange_weak(used, charged, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => used = changed,
            }", r"            self.used.store(charged, Ordering::SeqCst);
            used = charged;
            return used > 0;")],
    },
    Break {
        model: "every_record_that_is_appended_is_taken",
        what: "`settle` doesn't look at the list before the owner sleeps",
        file: "core/src/produce/ready.rs",
        pieces: &[(r"        if !state.ready.is_empty() {
            return false;
        }
        state.collected", r"        state.collected")],
    },
    Break {
        model: "every_record_that_is_appended_is_taken",
        what: "`take` leaves the partition announced",
        file: "core/src/produce/accumulator.rs",
        pieces: &[(r"        if remaining == Remaining::default() {
            state.announced = false;
        }", "")],
    },
    Break {
        model: "every_record_that_is_appended_is_taken",
        what: "`settle` takes the owner for awake",
        file: "core/src/produce/ready.rs",
        pieces: &[(r"        state.armed = armed;
        true", r"        state.armed |= armed;
        true")],
    },
    Break {
        model: "a_leader_change_loses_no_record",
        what: "`set_owner` doesn't say what was appended while there was none",
        file: "core/src/produce/accumulator.rs",
        pieces: &[(r"        oldest.map(|since| Ready { slot, since, full: !state.full.is_empty() })", r"        oldest.filter(|_| false).map(|since| Ready { slot, since, full: !state.full.is_empty() })")],
    },
    Break {
        model: "a_send_while_the_producer_closes_is_refused_or_reported",
        what: "`take_all` doesn't seal",
        file: "core/src/produce/accumulator.rs",
        pieces: &[(r"        state.sealed |= seal;
        into.extend(state.full.drain(..));", r"        let _ = seal;
        into.extend(state.full.drain(..));")],
    },
    Break {
        model: "nobody_sees_the_id_of_one_identity_with_the_epoch_of_another",
        what: "`get` doesn't look at the version again",
        file: "core/src/produce/producer_id.rs",
        pieces: &[(r"            if self.version.load(Ordering::Acquire) == before {", r"            if before == before.max(0) {")],
    },
    Break {
        model: "nobody_sees_the_id_of_one_identity_with_the_epoch_of_another",
        what: "`set` changes the id before the version",
        file: "core/src/produce/producer_id.rs",
        pieces: &[(r"        self.id.store(-1, Ordering::Release);
        self.version", r"        self.id.store(identity.id, Ordering::Release);
        self.version")],
    },
    Break {
        model: "every_command_reaches_the_owner",
        what: "`push` wakes before the command is in the queue",
        file: "core/src/cluster/command.rs",
        pieces: &[(r"        commands.queue.push_back(command);
        drop(commands);
        self.wake.wake();", r"        drop(commands);
        self.wake.wake();
        self.commands.lock().queue.push_back(command);")],
    },
    Break {
        model: "an_answer_or_its_absence_wakes_who_waits_for_it",
        what: "a completion's end wakes without saying under the lock that it is over",
        file: "core/src/completion.rs",
        pieces: &[(r"            slot.over = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }", r"            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        self.slot.lock().over = true;")],
    },
    Break {
        model: "an_event_wakes_who_looked_for_one_and_registered",
        what: "`push` takes the wakers before it appends",
        file: "core/src/event.rs",
        pieces: &[(r"        let wakers = {
            let mut state = self.state.lock();
            if state.events.len() == Self::LIMIT {", r"        let wakers = std::mem::take(&mut self.state.lock().wakers);
        let _: Vec<Waker> = {
            let mut state = self.state.lock();
            if state.events.len() == Self::LIMIT {")],
    },
    Break {
        model: "what_is_fetched_wakes_who_polls",
        what: "`register` doesn't look whether something came",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"        let mut state = self.state.lock();
        if !state.items.is_empty() || state.closed {
            return false;
        }
        if !state.wakers", r"        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        if !state.wakers")],
    },
    Break {
        model: "what_is_fetched_wakes_who_polls",
        what: "`push` takes the wakers before it appends",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"        let wakers = {
            let mut state = self.state.lock();
            for item in items {", r"        let wakers = std::mem::take(&mut self.state.lock().wakers);
        let _: Vec<Waker> = {
            let mut state = self.state.lock();
            for item in items {")],
    },
    Break {
        model: "closing_wakes_who_polls",
        what: "`close` says so after waking",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);", r"            let mut state = self.state.lock();
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        self.state.lock().closed = true;")],
    },
    Break {
        model: "closing_wakes_who_polls",
        what: "`register` doesn't look whether the queue is closed",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"        if !state.items.is_empty() || state.closed {", r"        if !state.items.is_empty() {")],
    },
    Break {
        model: "a_fetcher_that_waits_for_room_in_a_partition_is_woken",
        what: "`has_room` doesn't look again after it said that it waits",
        file: "core/src/fetch/partition.rs",
        pieces: &[(r"        drained && self.starved.swap(false, Ordering::SeqCst)", r"        drained && false")],
    },
    Break {
        model: "a_fetcher_that_waits_for_room_in_a_partition_is_woken",
        what: "`release` looks whether the fetcher waits before it counts",
        file: "core/src/fetch/partition.rs",
        pieces: &[(r"        let messages = self.queued_messages.fetch_sub(messages, Ordering::SeqCst) - messages;
        let bytes = self.queued_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        messages", r"        let starved = self.starved.load(Ordering::SeqCst);
        let messages = self.queued_messages.fetch_sub(messages, Ordering::SeqCst) - messages;
        let bytes = self.queued_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        starved && messages")],
    },
    Break {
        model: "a_fetcher_that_waits_for_the_clients_room_is_woken",
        what: "`room` doesn't look again after it said that it waits",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"        if queued <= self.limits.bytes / 2 { room(queued) } else { 0 }", r"        if queued > usize::MAX / 2 { room(queued) } else { 0 }")],
    },
    Break {
        model: "a_fetcher_that_waits_for_the_clients_room_is_woken",
        what: "who takes looks whether a fetcher waits before it counts what it took",
        file: "core/src/fetch/queue.rs",
        pieces: &[
            (
                "        self.queued_bytes.fetch_sub(records.bytes, Ordering::SeqCst);\n        if records.handle.release",
                "        let starved = self.starved.load(Ordering::SeqCst);
        self.queued_bytes.fetch_sub(records.bytes, Ordering::SeqCst);
        if !starved {
            return;
        }
        if records.handle.release",
            ),
            ("            wakes.0.push(Arc::clone(&records.handle));\n        }", "        }\n        wakes.0.push(Arc::clone(&records.handle));"),
            ("        if self.starved.load(Ordering::SeqCst)\n", "        if !wakes.0.is_empty()\n"),
        ],
    },
    Break {
        model: "what_comes_while_paused_comes_out_after_resuming",
        what: "`resume` wakes nobody",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"            if state.items.is_empty() { Vec::new() } else { std::mem::take(&mut state.wakers) }", r"            Vec::<Waker>::new()")],
    },
    Break {
        model: "what_comes_while_paused_comes_out_after_resuming",
        what: "a pause is set outside of the queue's lock",
        file: "core/src/fetch/queue.rs",
        pieces: &[(r"        {
            let _state = self.state.lock();
            handles.iter().for_each(|handle| handle.set_paused(true));
        }", r"        handles.iter().for_each(|handle| handle.set_paused(true));")],
    },
    Break {
        model: "a_send_to_an_unknown_topic_while_the_producer_closes_is_refused_or_reported",
        what: "records that waited are handed out without keeping later ones from waiting",
        file: "core/src/produce/topic.rs",
        pieces: &[("        waiting.error = error;\n", "        let _ = error;\n")],
    },
    Break {
        model: "a_topic_that_is_new_while_the_producer_closes_keeps_no_record",
        what: "neither `topic` nor `send` looks whether the producer is closed",
        file: "core/src/produce/shared.rs",
        pieces: &[
            ("        if self.closed.load(Ordering::SeqCst) {\n            // Whoever", "        if false {\n            // Whoever"),
            (
                "        if self.closed.load(Ordering::Relaxed) {\n            return Err(",
                "        if self.fatal.lock().is_some() {\n            return Err(",
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_that_is_broken_is_still_there_and_so_are_the_models() {
        let models =
            ["core/src/models/asking.rs", "core/src/models/receiving.rs", "core/src/models/sending.rs"];
        let read = |file: &str| fs::read_to_string(root().join("crates").join(file)).unwrap();
        let names: String = models.into_iter().chain(["net/src/mailbox.rs"]).map(read).collect();
        for it in BREAKS {
            broken(it, &read(it.file)).unwrap();
            assert!(names.contains(&format!("fn {}()", it.model)), "{}", it.model);
        }
    }

    #[test]
    fn each_model_has_a_break() {
        let core = root().join("crates/core/src/models");
        let mut text = fs::read_to_string(root().join("crates/net/src/mailbox.rs")).unwrap();
        for file in ["asking.rs", "receiving.rs", "sending.rs"] {
            text += &fs::read_to_string(core.join(file)).unwrap();
        }
        for line in text.split("#[test]").skip(1) {
            let name = line.trim_start().trim_start_matches("fn ").split('(').next().unwrap();
            assert!(BREAKS.iter().any(|it| it.model == name), "{name}");
        }
    }
}
