//! The word somebody probably meant.

/// The candidate closest to `word`, if it is close enough to be a slip: at most a third of the
/// word's characters inserted, removed or changed, and at least one.
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

/// Levenshtein's distance, in characters.
fn distance(a: &[char], b: &str) -> usize {
    // One row of the table: how far `a[..=i]` is from what was read of `b`.
    let mut row: Vec<usize> = (1..=a.len()).collect();
    let mut last = a.len();
    for (read, other) in b.chars().enumerate() {
        let mut diagonal = read;
        last = read + 1;
        for (cell, one) in row.iter_mut().zip(a) {
            let changed = diagonal + usize::from(*one != other);
            diagonal = *cell;
            last = changed.min(*cell + 1).min(last + 1);
            *cell = last;
        }
    }
    last
}

#[cfg(test)]
mod tests;
