//! The word somebody probably meant.

/// The candidate closest to `word`, if it is close enough to be a slip: at most a third of the
/// word's characters inserted, removed, changed or swapped with the next, and at least one.
///
/// Candidates equally close are settled by the order in which they are given.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().collect();
    let distance_max = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many characters are inserted, removed, changed, or swapped with the next one.
fn distance(a: &[char], b: &str) -> usize {
    // Three rows of the table: how far each beginning of `a` is from what was read of `b` two steps
    // ago, one step ago, and now.
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=a.len()).collect();
    let mut last_read = None;
    for (read, other) in b.chars().enumerate() {
        let mut row = vec![read + 1];
        for (i, one) in a.iter().enumerate() {
            let at = |row: &[usize], i: usize| row.get(i).copied().unwrap_or(usize::MAX - 1);
            let changed = at(&above, i) + usize::from(*one != other);
            let mut best = changed.min(at(&above, i + 1) + 1).min(at(&row, i) + 1);
            let crossed = i.checked_sub(1).and_then(|i| a.get(i)) == Some(&other);
            if crossed && last_read == Some(*one) {
                best = best.min(at(&before, i - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
        last_read = Some(other);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
