//! Lists of partitions, as `-p 0,2-4`.

use std::ops::RangeInclusive;

/// The partitions that one `-p` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionList(Vec<RangeInclusive<i32>>);

/// Parses numbers and ranges, separated by commas.
///
/// # Errors
///
/// A text that names the wrong part.
pub fn parse_partitions(text: &str) -> Result<PartitionList, String> {
    let wrong = |part: &str| format!("\"{part}\" is not a partition; write numbers and ranges such as 0,2-4");
    let number = |part: &str, whole: &str| match part.trim().parse::<i32>() {
        Ok(number @ 0..) if !part.trim().starts_with('+') => Ok(number),
        _ => Err(wrong(whole)),
    };
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = number(first, part)?..=number(last, part)?;
        if range.is_empty() { Err(wrong(part)) } else { Ok(range) }
    };
    text.split(',').map(range).collect::<Result<_, _>>().map(PartitionList)
}

/// Returns true if a list contains the partition, or if `lists` is empty.
pub fn contain(lists: &[PartitionList], partition: i32) -> bool {
    lists.is_empty() || lists.iter().flat_map(|list| &list.0).any(|range| range.contains(&partition))
}

/// Returns the smallest partition of the lists that is at least `count`: one that a topic with as many partitions lacks.
pub fn first_missing(lists: &[PartitionList], count: i32) -> Option<i32> {
    let ranges = lists.iter().flat_map(|list| &list.0);
    ranges.filter(|range| *range.end() >= count).map(|range| (*range.start()).max(count)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_numbers_and_ranges() {
        let lists = [parse_partitions("0, 2-4").unwrap(), parse_partitions("7").unwrap()];
        let chosen: Vec<i32> = (0..10).filter(|partition| contain(&lists, *partition)).collect();
        assert_eq!(chosen, [0, 2, 3, 4, 7]);
        assert!(contain(&[], 5));
        assert_eq!(
            (first_missing(&lists, 8), first_missing(&lists, 3), first_missing(&[], 1)),
            (None, Some(3), None)
        );
        for wrong in ["", "a", "-1", "3-1", "1-", "1,,2", "+1", "1-2-3", "99999999999"] {
            assert!(parse_partitions(wrong).is_err(), "{wrong}");
        }
    }
}
