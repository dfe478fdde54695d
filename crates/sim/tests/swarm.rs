//! Runs seeds of the simulator: fixed ones, and a few fresh ones. `cargo xtask swarm` runs many fresh ones.

mod support;

use std::sync::Mutex;

use ottla_sim::{Broken, Knobs, Outcome, deadlines::Deadlines, run};

/// Returns the outcome of a world that keeps all guarantees.
fn kept(knobs: &Knobs) -> Result<Outcome, Broken> {
    unbroken(run(knobs, false))
}

fn kept_with_trace(knobs: &Knobs) -> Result<Outcome, Broken> {
    unbroken(run(knobs, true))
}

fn unbroken(mut outcome: Outcome) -> Result<Outcome, Broken> {
    outcome.broken.take().map_or(Ok(outcome), Err)
}

fn plain(seed: u64) -> Result<Outcome, Broken> {
    kept(&Knobs::from_seed(seed))
}

fn differing_topics(seed: u64) -> Result<Outcome, Broken> {
    kept(&Knobs::with_differing_topics(seed))
}

fn telemetry(seed: u64) -> Result<Outcome, Broken> {
    kept(&Knobs::with_telemetry(seed))
}

fn ceilings(seed: u64) -> Result<Outcome, Broken> {
    kept(&Knobs::with_ceilings(seed))
}

fn sasl(seed: u64) -> Result<Outcome, Broken> {
    kept(&Knobs::with_sasl(seed))
}

fn hardships(seed: u64) -> Result<Outcome, Broken> {
    kept(&Knobs::with_hardships(seed))
}

/// Returns the number of records that brokers acknowledged.
fn acknowledged(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().map(|outcome| outcome.acknowledged).sum()
}

/// `every_fault_occurs_and_has_an_effect` runs 18 other seeds.
#[test]
fn fixed_seeds_keep_all_guarantees() {
    let others = (1..=45).filter(|seed| !FAULTY.contains(seed));
    let records = acknowledged(&support::check("", others, plain));
    assert!(records > 2_000, "hardly anything was acknowledged: {records}");
}

#[test]
fn topics_with_own_settings_keep_all_guarantees() {
    let records = acknowledged(&support::check("--differing-topics ", 1..=12, differing_topics));
    assert!(records > 500, "hardly anything was acknowledged: {records}");
}

#[test]
fn clients_that_push_metrics_keep_all_guarantees() {
    let outcomes = support::check("--telemetry ", 1..=6, telemetry);
    let records = acknowledged(&outcomes);
    let last_pushes: usize = outcomes.iter().map(|outcome| outcome.last_pushes).sum();
    assert!(records > 1_000, "hardly anything was acknowledged: {records}");
    assert!(last_pushes > 10, "hardly any client pushed metrics when it was closed: {last_pushes}");
}

#[test]
fn clients_with_a_ceiling_of_memory_keep_all_guarantees() {
    let records = acknowledged(&support::check("--ceilings ", 1..=12, ceilings));
    assert!(records > 500, "hardly anything was acknowledged: {records}");
}

#[test]
fn fresh_clients_with_a_ceiling_of_memory_keep_all_guarantees() {
    support::check_fresh("--ceilings ", 1, ceilings);
}

/// What traces say of the hardships and their effects.
const HARDSHIPS: [&str; 14] = [
    "damaged in",
    ": a fetched batch",
    ": a sent batch",
    ": the length of a response",
    "CORRUPT_MESSAGE, -1",
    "is full",
    "KAFKA_STORAGE_ERROR, -1",
    "can't follow the others",
    "NOT_ENOUGH_REPLICAS, -1",
    "the controller quorum is lost",
    "is replaced by one of V3_9_1",
    "is replaced by one of V4_3_1",
    "never returns",
    "resolves broker for ever",
];

#[test]
fn worlds_with_hardships_keep_all_guarantees_and_each_has_an_effect() {
    let missing = Mutex::new(HARDSHIPS.to_vec());
    let outcomes = support::check("--hardships ", 1..=12, |seed| {
        let outcome = kept_with_trace(&Knobs::with_hardships(seed))?;
        let is_missing = |what: &&str| !outcome.trace.iter().any(|line| line.contains(*what));
        missing.lock().expect("no thread panics").retain(is_missing);
        Ok(Outcome { trace: Vec::new(), ..outcome })
    });
    let (missing, records) = (missing.into_inner().expect("no thread panics"), acknowledged(&outcomes));
    assert!(missing.is_empty(), "{missing:?} did not happen");
    assert!(records > 500, "hardly anything was acknowledged: {records}");
}

#[test]
fn fresh_worlds_with_hardships_keep_all_guarantees() {
    support::check_fresh("--hardships ", 1, hardships);
}

#[test]
fn fresh_seeds_keep_all_guarantees() {
    support::check_fresh("", 1, plain);
}

#[test]
fn fresh_topics_with_own_settings_keep_all_guarantees() {
    support::check_fresh("--differing-topics ", 1, differing_topics);
}

#[test]
fn fresh_clients_that_push_metrics_keep_all_guarantees() {
    support::check_fresh("--telemetry ", 1, telemetry);
}

#[test]
fn fresh_clients_that_authenticate_keep_all_guarantees() {
    support::check_fresh("--sasl ", 1, sasl);
}

#[test]
fn same_seed_gives_the_same_trace() {
    for seed in [6, 8, 77] {
        let knobs = Knobs::from_seed(seed);
        let (first, second) = (run(&knobs, true), run(&knobs, true));
        assert!(first.events > 100, "seed {seed} has events");
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

/// Seeds whose worlds contain every fault.
const FAULTY: [u64; 18] = [2, 7, 14, 16, 21, 22, 24, 34, 36, 37, 38, 45, 51, 60, 63, 66, 80, 117];

/// What traces say of the faults and their effects.
const EFFECTS: [&str; 48] = [
    "is reset",
    "is stalled (0)",
    "is stalled (1)",
    "is stalled (2)",
    "is half open",
    "can't reach broker",
    "no bytes pass ToBroker",
    "no bytes pass ToClient",
    "is killed (Kept)",
    "is killed (Lost)",
    "stops listening",
    "all leaders rotate",
    "LeaderHint",
    "becomes the controller",
    "is replaced by one with",
    "the next Produce response is lost",
    "gets no responses, and is cut off",
    "will meet Delay",
    "will meet CloseConnection",
    "will meet Throttle",
    "Throttled",
    "will meet NeverRespond",
    "will meet TruncateResponse",
    "will meet ShiftCorrelationId",
    "no name is resolved",
    "the resolver's results are Empty",
    "the resolver's results are Several",
    "the resolver's results are Wrong",
    "is slow",
    "metadata is frozen",
    "evicts all fetch sessions",
    "FETCH_SESSION_ID_NOT_FOUND",
    "sleeps for",
    "the wall clocks jump",
    "no producer gets a producer ID",
    "RenewIdentity",
    "a batch will be rejected with MESSAGE_TOO_LARGE",
    "MESSAGE_TOO_LARGE, -1",
    "NOT_LEADER_OR_FOLLOWER, -1",
    "NOT_ENOUGH_REPLICAS, -1",
    "loses the records before",
    "is elected and has no more than",
    "is deleted",
    "UNKNOWN_TOPIC_ID",
    "OFFSET_OUT_OF_RANGE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "brokers respond to Fetch at once",
];

/// A fault that is never injected, or that has no effect, would test nothing.
#[test]
fn every_fault_occurs_and_has_an_effect() {
    let missing = Mutex::new(EFFECTS.to_vec());
    let lost = support::check("", FAULTY, |seed| {
        let trace = kept_with_trace(&Knobs::from_seed(seed))?.trace;
        let is_missing = |what: &&str| !trace.iter().any(|line| line.contains(*what));
        missing.lock().expect("no thread panics").retain(is_missing);
        Ok(trace.iter().filter(|line| line.contains("(Lost), ") && !line.contains(" 0 records")).count())
    });
    let missing = missing.into_inner().expect("no thread panics");
    let lost: usize = lost.into_iter().sum();
    assert!(missing.is_empty() && lost > 0, "{missing:?} did not happen, {lost} brokers lost records");
}

#[test]
fn applications_purge_flush_and_close_in_some_runs() {
    let mut missing = vec![
        "is purged: Purge { queue: true, in_flight: false }",
        "is purged: Purge { queue: false, in_flight: true }",
        "is purged: Purge { queue: true, in_flight: true }",
        "has no records left",
        "reached the deadline of its flush",
        "lets go",
        "is closed",
        "is purged during the move",
        "queries offsets",
        "queries the cluster",
        "queries statistics",
    ];
    let mut with_deadlines = (1..).map(Knobs::from_seed).filter(|knobs| knobs.deadlines != Deadlines::NONE);
    while !missing.is_empty() {
        let knobs = with_deadlines.next().expect("there are always more");
        assert!(knobs.seed < 100, "{missing:?} did not happen");
        let trace = kept_with_trace(&knobs)
            .unwrap_or_else(|broken| panic!("cargo xtask sim {}: {broken}", knobs.seed))
            .trace;
        missing.retain(|what| !trace.iter().any(|line| line.contains(what)));
    }
}

/// Seeds that once broke a guarantee.
mod found {
    use super::*;

    fn plain_hold(seeds: &[u64]) {
        support::check("", seeds.iter().copied(), plain);
    }

    fn producers_hold(seeds: &[u64]) {
        let seeds = seeds.iter().copied();
        support::check("--producers-only ", seeds, |seed| kept(&Knobs::producers_only(seed)));
    }

    #[test]
    fn connection_lost_during_api_versions_does_not_imply_an_old_broker() {
        producers_hold(&[11, 1630, 1649]);
    }

    #[test]
    fn leader_that_loses_leadership_may_have_written_the_batch() {
        producers_hold(&[1737, 1738, 1923]);
    }

    #[test]
    fn late_batch_of_an_old_epoch_is_fenced() {
        producers_hold(&[1979, 174, 234]);
    }

    #[test]
    fn second_batch_does_not_overtake_a_failed_first() {
        producers_hold(&[4181, 4348, 1198]);
    }

    #[test]
    fn possibly_written_batch_keeps_its_sequence_number() {
        producers_hold(&[8404, 8802, 9852]);
    }

    #[test]
    fn older_connection_may_deliver_an_out_of_order_batch() {
        producers_hold(&[6697, 9448, 7502]);
    }

    /// Runs a world from before there were faults that change logs.
    fn untouched_hold(seeds: &[u64]) {
        let seeds = seeds.iter().copied();
        support::check("--untouched-logs ", seeds, |seed| kept(&Knobs::untouched_logs(seed)));
    }

    #[test]
    fn partition_end_is_not_reported_after_a_seek() {
        untouched_hold(&[168]);
    }

    #[test]
    fn read_committed_consumer_gets_offsets_without_transactions() {
        untouched_hold(&[275]);
    }

    #[test]
    fn refused_partition_is_fetched_again_while_others_are_in_flight() {
        untouched_hold(&[546, 990, 1147, 1851]);
    }

    #[test]
    fn metadata_is_not_requested_with_every_response() {
        untouched_hold(&[1538, 4049, 4195]);
    }

    #[test]
    fn connection_lost_without_requests_does_not_block_the_next() {
        untouched_hold(&[1_795_243_168_294_441_523]);
    }

    #[test]
    fn offset_relative_to_the_end_does_not_use_the_first_epoch() {
        untouched_hold(&[2, 60, 72, 88, 117, 140]);
    }

    #[test]
    fn epoch_without_records_was_not_truncated() {
        untouched_hold(&[38]);
    }

    #[test]
    fn recreated_topics_deletions_and_unclean_elections_keep_guarantees() {
        plain_hold(&[39, 388, 406, 410, 575, 707, 836, 904, 983, 1083, 1465, 1901, 2218, 2817, 2939, 3059]);
    }

    #[test]
    fn consumer_uses_the_leader_epoch_of_a_recreated_topic() {
        let seeds = [1283, 1465, 4513, 1_795_256_026_346_331_320, 1_795_256_026_346_332_238];
        support::check("--without-ids ", seeds, |seed| kept(&Knobs::without_ids(seed)));
    }

    #[test]
    fn partition_with_a_failed_seek_is_read_from_its_log_start() {
        plain_hold(&[1_795_267_329_447_762_438, 1_795_267_329_447_764_746]);
    }

    #[test]
    fn partitions_without_offsets_share_metadata_requests() {
        plain_hold(&[1_795_280_122_554_531_112]);
    }

    #[test]
    fn recreated_topic_with_unknown_id_stops_using_the_old_id() {
        plain_hold(&[3657]);
    }

    #[test]
    fn epoch_of_a_deleted_topic_is_given_up() {
        plain_hold(&[1_795_289_106_303_307_587]);
    }

    #[test]
    fn unsent_records_may_be_purged_after_newer_ones() {
        plain_hold(&[1_795_289_106_303_296_218, 1_795_289_106_303_297_533, 1_795_289_106_303_303_495]);
    }

    #[test]
    fn unwritten_records_in_flight_time_out_before_waiting_ones() {
        plain_hold(&[1_795_289_106_303_311_845, 1_795_290_019_339_664_170]);
    }

    #[test]
    fn broker_that_serves_small_requests_one_by_one_gets_time() {
        plain_hold(&[1_795_284_587_345_974_218]);
    }
}

/// Tokens expire and can't be obtained, passwords change at the brokers first, and sessions end while records flow.
#[test]
fn clients_that_authenticate_keep_all_guarantees() {
    let outcomes = support::check("--sasl ", 1..=12, sasl);
    let records = acknowledged(&outcomes);
    let reauthentications: u64 = outcomes.iter().map(|outcome| outcome.reauthentications).sum();
    assert!(records > 800, "hardly anything was acknowledged: {records}");
    assert!(reauthentications > 80, "hardly any session was renewed: {reauthentications}");
}

#[test]
fn clients_survive_an_hour_without_their_identity_provider() {
    for outcome in support::check("--sasl-outage ", 1..=2, |seed| kept(&Knobs::with_outage(seed))) {
        // The last tokens ended 40 minutes before the provider was back, and everything was sent before and after.
        let share = outcome.acknowledged * 100 / outcome.records;
        assert!((50..=100).contains(&share), "{share} % of the records were written");
        assert!(outcome.reauthentications > 0);
    }
}
