//! The memory of regular expressions that a peer sends.

use ottla_protocol::pattern::Pattern;

use super::allocations::count;

/// What a pattern may take for its compilation and one search: what is kept is a part of it.
const BOUND: usize = 64 << 20;

#[test]
fn memory_of_a_search_does_not_grow_with_groups() {
    for text in
        ["()".repeat(6000), "(a)".repeat(4000), "(a|b)?".repeat(2000), "(".repeat(200) + &")".repeat(200)]
    {
        let (_, bytes) = count(|| Pattern::whole(&text).is_ok_and(|pattern| pattern.is_match("orders")));
        assert!(bytes < BOUND, "{} bytes of a pattern take {bytes}", text.len());
    }
}

#[test]
fn memory_of_a_refused_pattern_is_bounded() {
    for text in ["(a{1000}){1000}", "((x{1000}){1000}){1000}", "[a-z]{1000000}"] {
        let (pattern, bytes) = count(|| Pattern::whole(text));
        assert!(pattern.is_err() && bytes < BOUND, "{text} takes {bytes}");
    }
}
