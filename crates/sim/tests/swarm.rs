//! Some seeds of the simulator, the same ones every time. Fresh ones: `cargo xtask swarm`.

use ottla_sim::{Knobs, impatience::Impatience, run};

#[test]
fn two_hundred_seeds_keep_all_promises() {
    let mut records = 0;
    for seed in 1..=200 {
        let outcome = run(&Knobs::from_seed(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}: cargo xtask sim {seed}");
        records += outcome.acknowledged;
    }
    assert!(records > 10_000, "hardly anything was acknowledged: {records}");
}

#[test]
fn topics_with_settings_of_their_own_break_no_promise() {
    let mut records = 0;
    for seed in 1..=25 {
        let outcome = run(&Knobs::with_differing_topics(seed), false);
        assert_eq!(outcome.broken, None, "seed {seed}");
        records += outcome.acknowledged;
    }
    assert!(records > 1_000, "hardly anything was acknowledged: {records}");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [3, 40, 77] {
        let knobs = Knobs::from_seed(seed);
        let (first, second) = (run(&knobs, true), run(&knobs, true));
        assert!(first.events > 100, "seed {seed} has a story");
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

/// A fault that never comes would test nothing, and one that nobody feels neither.
#[test]
fn every_fault_comes_in_some_story_and_is_felt() {
    let mut missing = vec![
        "is reset",
        "is stalled (0)",
        "is stalled (1)",
        "is stalled (2)",
        "is half open",
        "can't reach broker",
        "nothing goes ToBroker",
        "nothing goes ToClient",
        "is killed (Kept)",
        "is killed (Lost)",
        "stops listening",
        "all leaders rotate",
        "LeaderHint",
        "becomes the controller",
        "is replaced by one with",
        "the next answer to Produce is lost",
        "gets no answers, and is cut off",
        "will meet Delay",
        "will meet CloseConnection",
        "will meet Throttle",
        "Throttled",
        "will meet NeverAnswer",
        "will meet TruncateAnswer",
        "will meet ShiftCorrelationId",
        "no name is resolved",
        "the name server's answers are Empty",
        "the name server's answers are Several",
        "the name server's answers are Wrong",
        "is slow",
        "metadata is frozen",
        "forgets fetch sessions",
        "FETCH_SESSION_ID_NOT_FOUND",
        "sleeps for",
        "the wall clocks jump",
        "nobody gets an identity",
        "RenewIdentity",
        "a batch will be answered MESSAGE_TOO_LARGE",
        "MESSAGE_TOO_LARGE, -1",
        "NOT_LEADER_OR_FOLLOWER, -1",
        "NOT_ENOUGH_REPLICAS, -1",
        "loses what is before",
        "is elected and has no more than",
        "is deleted",
        "UNKNOWN_TOPIC_ID",
        "OFFSET_OUT_OF_RANGE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
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
fn applications_purge_flush_and_close_in_some_story() {
    let mut missing = vec![
        "is purged: Purge { queue: true, in_flight: false }",
        "is purged: Purge { queue: false, in_flight: true }",
        "is purged: Purge { queue: true, in_flight: true }",
        "has nothing left",
        "has waited enough",
        "lets go",
        "is closed",
        "is purged in this moment",
        "is asked for offsets",
        "is asked for the cluster",
        "is asked for statistics",
    ];
    let mut impatient = (1..).map(Knobs::from_seed).filter(|knobs| knobs.impatience != Impatience::NONE);
    while !missing.is_empty() {
        let knobs = impatient.next().expect("there are always more");
        assert!(knobs.seed < 100, "{missing:?} did not happen");
        let trace = run(&knobs, true).trace;
        missing.retain(|what| !trace.iter().any(|line| line.contains(what)));
    }
}

/// Seeds that once broke a promise.
mod found {
    use super::*;

    fn holds(seed: u64) {
        assert_eq!(run(&Knobs::producers_only(seed), false).broken, None, "seed {seed}");
    }

    #[test]
    fn a_connection_lost_while_asking_for_versions_does_not_make_an_old_broker() {
        [11, 1630, 1649].into_iter().for_each(holds);
    }

    #[test]
    fn a_leader_that_loses_its_leadership_may_have_written_what_it_refused() {
        [1737, 1738, 1923].into_iter().for_each(holds);
    }

    #[test]
    fn a_late_batch_of_an_old_epoch_is_fenced() {
        [1979, 174, 234].into_iter().for_each(holds);
    }

    #[test]
    fn a_second_batch_does_not_pass_a_first_that_failed() {
        [4181, 4348, 1198].into_iter().for_each(holds);
    }

    #[test]
    fn a_batch_that_may_have_been_written_is_not_numbered_anew() {
        [8404, 8802, 9852].into_iter().for_each(holds);
    }

    #[test]
    fn an_older_connection_may_bring_what_was_out_of_order() {
        [6697, 9448, 7502].into_iter().for_each(holds);
    }

    /// Worlds from before others than producers changed logs.
    fn holds_untouched(seed: u64) {
        assert_eq!(run(&Knobs::untouched_logs(seed), false).broken, None, "seed {seed}");
    }

    #[test]
    fn the_end_of_a_partition_is_not_told_after_a_seek() {
        holds_untouched(168);
    }

    #[test]
    fn a_consumer_that_reads_committed_asks_a_broker_without_transactions_for_offsets() {
        holds_untouched(275);
    }

    #[test]
    fn a_partition_that_was_refused_is_fetched_again_though_others_keep_a_fetch_in_flight() {
        [546, 990, 1147, 1851].into_iter().for_each(holds_untouched);
    }

    #[test]
    fn metadata_is_not_asked_for_with_every_answer() {
        [1538, 4049, 4195].into_iter().for_each(holds_untouched);
    }

    #[test]
    fn a_connection_lost_while_nobody_asks_does_not_keep_the_next_one_waiting() {
        holds_untouched(1_795_243_168_294_441_523);
    }

    #[test]
    fn a_tail_has_not_the_epoch_of_the_beginning() {
        [2, 60, 72, 88, 117, 140].into_iter().for_each(holds_untouched);
    }

    #[test]
    fn an_epoch_without_records_was_not_cut_off() {
        holds_untouched(38);
    }

    #[test]
    fn topics_made_anew_deleted_records_and_unclean_elections_break_no_promise() {
        for seed in [39, 388, 406, 410, 575, 707, 836, 904, 983, 1083, 1465, 1901, 2218, 2817, 2939, 3059] {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn a_consumer_asks_the_same_leader_under_the_epoch_of_a_topic_that_was_made_anew() {
        for seed in [1283, 1465, 4513, 1_795_256_026_346_331_320, 1_795_256_026_346_332_238] {
            assert_eq!(run(&Knobs::without_ids(seed), false).broken, None, "seed {seed}");
        }
    }

    #[test]
    fn a_partition_whose_seek_failed_is_read_from_where_its_log_begins() {
        for seed in [1_795_267_329_447_762_438, 1_795_267_329_447_764_746] {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn partitions_whose_offsets_nobody_tells_do_not_ask_for_metadata_each_by_itself() {
        let seed = 1_795_280_122_554_531_112;
        assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
    }

    #[test]
    fn a_topic_made_anew_whose_new_id_nobody_tells_is_not_asked_for_by_its_old_one_for_ever() {
        assert_eq!(run(&Knobs::from_seed(3657), false).broken, None, "cargo xtask sim 3657");
    }

    #[test]
    fn an_epoch_of_a_topic_that_is_no_more_is_not_believed_for_ever() {
        let seed = 1_795_289_106_303_307_587;
        assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
    }

    #[test]
    fn records_that_come_back_unsent_after_a_purge_may_be_purged_behind_newer_ones() {
        let seeds = [1_795_289_106_303_296_218, 1_795_289_106_303_297_533, 1_795_289_106_303_303_495];
        for seed in seeds {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn what_was_in_flight_and_never_written_times_out_before_what_waited_behind_it() {
        for seed in [1_795_289_106_303_311_845, 1_795_290_019_339_664_170] {
            assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
        }
    }

    #[test]
    fn a_broker_that_answers_small_requests_one_by_one_is_given_the_time() {
        let seed = 1_795_284_587_345_974_218;
        assert_eq!(run(&Knobs::from_seed(seed), false).broken, None, "cargo xtask sim {seed}");
    }
}
