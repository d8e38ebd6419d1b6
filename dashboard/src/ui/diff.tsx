/** A difference of two texts, line by line, with signs beside the colours. */
import { changedLines, type DiffLine } from '../lib/change';
import { plural } from '../lib/format';
import { clean } from '../lib/text';

const SIGN = { same: ' ', added: '+', removed: '-', gap: '⋯' } as const;

export function Diff({ diff, label }: { diff: readonly DiffLine[]; label: string }) {
  const { added, removed } = changedLines(diff);
  return (
    <div class="diff" role="group" aria-label={label}>
      <p class="diff-sum">
        {label}: {plural(added, 'line')} more, {plural(removed, 'line')} less
      </p>
      <pre tabIndex={0} aria-label={label}>
        {diff.map((line, i) => (
          <span key={i} class={`diff-line diff-${line.kind}`}>
            <span class="diff-sign">{SIGN[line.kind]}</span>
            {clean(line.text, 2_000).text}
            {'\n'}
          </span>
        ))}
      </pre>
    </div>
  );
}
