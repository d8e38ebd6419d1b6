/** Finds by a few letters: every word typed must be there, whole words and beginnings first. */

/** The best `max` of `items`, best first. */
export function best<T>(typed: string, items: readonly T[], text: (item: T) => string, max: number): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const scored: { item: T; score: number; at: number }[] = [];
  for (const [at, item] of items.entries()) {
    const score = scoreOf(words, text(item).toLowerCase());
    if (score > 0) scored.push({ item, score, at });
  }
  scored.sort((a, b) => b.score - a.score || a.at - b.at);
  return scored.slice(0, max).map(({ item }) => item);
}

function scoreOf(words: readonly string[], text: string): number {
  let total = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) {
      const spread = subsequence(word, text);
      if (!spread) return 0;
      total += 1;
      continue;
    }
    const begins = at === 0 || /[^a-z0-9]/.test(text[at - 1] ?? '');
    const whole = begins && /^(?:$|[^a-z0-9])/.test(text.slice(at + word.length));
    total += 10 + (at === 0 ? 8 : begins ? 5 : 0) + (whole ? 4 : 0) - Math.min(4, text.length / 40);
  }
  return total;
}

function subsequence(word: string, text: string): boolean {
  if (word.length < 3) return false;
  let from = 0;
  for (const letter of word) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return false;
  }
  return true;
}
