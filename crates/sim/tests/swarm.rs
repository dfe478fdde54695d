//! Runs fixed seeds of the simulator. `cargo xtask swarm` runs fresh ones.

use ottla_sim::{Knobs, deadlines::Deadlines, run};

#[test]
fn sixty_seeds_keep_all_guarantees() {
    let mut records = 0;
    for seed in 1..=60 {
        let outcome = run(&Knobs::from_seed(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}: cargo xtask sim {seed}");
        records += outcome.acknowledged;
    }
    assert!(records > 3_000, "hardly anything was acknowledged: {records}");
}

#[test]
fn topics_with_own_settings_keep_all_guarantees() {
    let mut records = 0;
    for seed in 1..=12 {
        let outcome = run(&Knobs::with_differing_topics(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}");
        records += outcome.acknowledged;
    }
    assert!(records > 500, "hardly anything was acknowledged: {records}");
}

#[test]
fn clients_that_push_metrics_keep_all_guarantees() {
    let (mut records, mut last_pushes) = (0, 0);
    for seed in 1..=12 {
        let outcome = run(&Knobs::with_telemetry(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}: cargo xtask sim --telemetry {seed}");
        records += outcome.acknowledged;
        last_pushes += outcome.last_pushes;
    }
    assert!(records > 1_000, "hardly anything was acknowledged: {records}");
    assert!(last_pushes > 10, "hardly any client pushed metrics when it was closed: {last_pushes}");
}

#[test]
fn same_seed_gives_the_same_trace() {
    for seed in [3, 40, 77] {
        let knobs = Knobs::from_seed(seed);
        let (first, second) = (run(&knobs, true), run(&knobs, true));
        assert!(first.events > 100, "seed {seed} has events");
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

/// A fault that is never injected, or that has no effect, would test nothing.
#[test]
fn every_fault_occurs_and_has_an_effect() {
    let mut missing = vec![
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
    let mut lost = 0;
    for seed in [2, 7, 14, 16, 21, 22, 24, 34, 36, 37, 38, 45, 51, 60, 63, 66, 80] {
        let trace = run(&Knobs::from_seed(seed), true).trace;
        missing.retain(|what| !trace.iter().any(|line| line.contains(what)));
        lost += trace.iter().filter(|line| line.contains("(Lost), ") && !line.contains(" 0 records")).count();
        if missing.is_empty() && lost > 0 {
            return;
        }
    }
    panic!("{missing:?} did not happen, {lost} brokers lost records");
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
        let trace = run(&knobs, true).trace;
        missing.retain(|what| !trace.iter().any(|line| line.contains(what)));
    }
}

/// Seeds that once broke a guarantee.
mod found {
    use super::*;

    fn holds(seed: u64) {
        assert_eq!(run(&Knobs::producers_only(seed), false).broken, None, "seed {seed}");
    }

    #[test]
    fn connection_lost_during_api_versions_does_not_imply_an_old_broker() {
        [11, 1630, 1649].into_iter().for_each(holds);
    }

    #[test]
    fn leader_that_loses_leadership_may_have_written_the_batch() {
        [1737, 1738, 1923].into_iter().for_each(holds);
    }

    #[test]
    fn late_batch_of_an_old_epoch_is_fenced() {
        [1979, 174, 234].into_iter().for_each(holds);
    }

    #[test]
    fn second_batch_does_not_overtake_a_failed_first() {
        [4181, 4348, 1198].into_iter().for_each(holds);
    }

    #[test]
    fn possibly_written_batch_keeps_its_sequence_number() {
        [8404, 8802, 9852].into_iter().for_each(holds);
    }

    #[test]
    fn older_connection_may_deliver_an_out_of_order_batch() {
        [6697, 9448, 7502].into_iter().for_each(holds);
    }

    /// Runs a world from before there were faults that change logs.
    fn holds_untouched(seed: u64) {
        assert_eq!(run(&Knobs::untouched_logs(seed), false).broken, None, "seed {seed}");
    }

    #[test]
    fn partition_end_is_not_reported_after_a_seek() {
        holds_untouched(168);
    }

    #[test]
    fn read_committed_consumer_gets_offsets_without_transactions() {
        holds_untouched(275);
    }

    #[test]
    fn refused_partition_is_fetched_again_while_others_are_in_flight() {
        [546, 990, 1147, 1851].into_iter().for_each(holds_untouched);
    }

    #[test]
    fn metadata_is_not_requested_with_every_response() {
        [1538, 4049, 4195].into_iter().for_each(holds_untouched);
    }

    #[test]
    fn connection_lost_without_requests_does_not_block_the_next() {
        holds_untouched(1_795_243_168_294_441_523);
    }

    #[test]
    fn offset_relative_to_the_end_does_not_use_the_first_epoch() {
        [2, 60, 72, 88, 117, 140].into_iter().for_each(holds_untouched);
    }

    #[test]
    fn epoch_without_records_was_not_truncated() {
        holds_untouched(38);
    }

    #[test]
    fn recreated_topics_deletions_and_unclean_elections_keep_guarantees() {
        for seed in [39, 388, 406, 410, 575, 707, 836, 904, 983, 1083, 1465, 1901, 2218, 2817, 2939, 3059] {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn consumer_uses_the_leader_epoch_of_a_recreated_topic() {
        for seed in [1283, 1465, 4513, 1_795_256_026_346_331_320, 1_795_256_026_346_332_238] {
            assert_eq!(run(&Knobs::without_ids(seed), false).broken, None, "seed {seed}");
        }
    }

    #[test]
    fn partition_with_a_failed_seek_is_read_from_its_log_start() {
        for seed in [1_795_267_329_447_762_438, 1_795_267_329_447_764_746] {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn partitions_without_offsets_share_metadata_requests() {
        let seed = 1_795_280_122_554_531_112;
        assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
    }

    #[test]
    fn recreated_topic_with_unknown_id_stops_using_the_old_id() {
        assert_eq!(run(&Knobs::from_seed(3657), false).broken, None, "cargo xtask sim 3657");
    }

    #[test]
    fn epoch_of_a_deleted_topic_is_given_up() {
        let seed = 1_795_289_106_303_307_587;
        assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
    }

    #[test]
    fn unsent_records_may_be_purged_after_newer_ones() {
        let seeds = [1_795_289_106_303_296_218, 1_795_289_106_303_297_533, 1_795_289_106_303_303_495];
        for seed in seeds {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn unwritten_records_in_flight_time_out_before_waiting_ones() {
        for seed in [1_795_289_106_303_311_845, 1_795_290_019_339_664_170] {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn broker_that_serves_small_requests_one_by_one_gets_time() {
        let seed = 1_795_284_587_345_974_218;
        assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
    }
}

/// Tokens expire and can't be obtained, passwords change at the brokers first, and sessions end while records flow.
#[test]
fn clients_that_authenticate_keep_all_guarantees() {
    let (mut records, mut reauthentications) = (0, 0);
    for seed in 1..=25 {
        let outcome = run(&Knobs::with_sasl(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}: ottla-sim --sasl {seed}");
        records += outcome.acknowledged;
        reauthentications += outcome.reauthentications;
    }
    assert!(records > 800, "hardly anything was acknowledged: {records}");
    assert!(reauthentications > 80, "hardly any session was renewed: {reauthentications}");
}

#[test]
fn clients_survive_an_hour_without_their_identity_provider() {
    for seed in 1..=2 {
        let outcome = run(&Knobs::with_outage(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}: cargo xtask sim --sasl-outage {seed}");
        // The last tokens ended 40 minutes before the provider was back, and everything was sent before and after.
        let share = outcome.acknowledged * 100 / outcome.records;
        assert!((50..=100).contains(&share), "seed {seed}: {share} % of the records were written");
        assert!(outcome.reauthentications > 0, "seed {seed}");
    }
}
