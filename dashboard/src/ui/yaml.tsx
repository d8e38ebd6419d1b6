/** A thing as YAML, with line numbers and a copy button. */
import { useMemo } from 'preact/hooks';
import { clean, TEXT_LEN_HARD_MAX } from '../lib/text';
import { toYaml } from '../lib/yaml';
import { Copy } from './basics';

export function Yaml({ value, label = 'YAML' }: { value: unknown; label?: string }) {
  const text = useMemo(() => toYaml(value), [value]);
  const { text: shown, cut } = clean(text, TEXT_LEN_HARD_MAX, true);
  return (
    <div class="yaml" role="group" aria-label={label}>
      <div class="yaml-copy">
        <Copy text={text} label={`Copy as ${label}`} />
      </div>
      <pre tabIndex={0} aria-label={label}>
        {shown.split('\n').map((line, i) => (
          <span key={i} class="yaml-line">
            {parts(line)}
            {'\n'}
          </span>
        ))}
        {cut > 0 && `… ${cut.toLocaleString('en-US')} more characters: use the command line`}
      </pre>
    </div>
  );
}

/** The name before the colon in its own colour. */
function parts(line: string) {
  const found = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[^\s":][^:]*)(:)(?= |$)(.*)$/.exec(line);
  if (!found) return line;
  return (
    <>
      {found[1]}
      <span class="yaml-key">{found[2]}</span>
      {found[3]}
      {found[4]}
    </>
  );
}
