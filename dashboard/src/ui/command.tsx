/** The same thing on the command line: a small box with two tongues, CLI and curl. */
import { useSignal } from '@preact/signals';
import { curl, type Call } from '../lib/command';
import { token } from '../lib/session';
import { Copy } from './basics';

interface Props {
  /** The `argosy` line, made with `shell()`. */
  cli?: string;
  call?: Call;
  label?: string;
}

export function Equivalent({ cli, call, label = 'The same on the command line' }: Props) {
  const wanted = useSignal<'cli' | 'curl'>('cli');
  const request = call ? curl(call, location.origin, token.value !== '') : null;
  const shown = wanted.value === 'cli' && cli ? 'cli' : request ? 'curl' : 'cli';
  const text = shown === 'cli' ? (cli ?? '') : (request ?? '');
  return (
    <div class="equivalent" role="group" aria-label={label}>
      {cli && request && (
        <div class="equivalent-kinds">
          {(['cli', 'curl'] as const).map((kind) => (
            <button key={kind} type="button" aria-pressed={shown === kind} onClick={() => (wanted.value = kind)}>
              {kind === 'cli' ? 'CLI' : 'curl'}
            </button>
          ))}
        </div>
      )}
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label="Copy the command" />
    </div>
  );
}
