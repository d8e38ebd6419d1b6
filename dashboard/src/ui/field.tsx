/** A labelled control with what is wrong with it below, found by screen readers with it. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Text } from './basics';

interface Props {
  label: string;
  hint?: ComponentChildren;
  problem?: string | null;
  /** The control; it is given its id and what describes it. */
  children: (control: { id: string; 'aria-invalid': 'true' | 'false'; 'aria-describedby': string | undefined }) => ComponentChildren;
}

export function Field({ label, hint, problem, children }: Props) {
  const id = useId();
  const said = problem ?? null;
  return (
    <div class={`field${said ? ' field-bad' : ''}`}>
      <label for={id}>{label}</label>
      {children({ id, 'aria-invalid': said ? 'true' : 'false', 'aria-describedby': said ? `${id}-bad` : hint ? `${id}-hint` : undefined })}
      {said ? (
        <p class="field-problem" id={`${id}-bad`} role="alert">
          <Text value={said} max={300} />
        </p>
      ) : (
        hint && (
          <p class="field-hint" id={`${id}-hint`}>
            {hint}
          </p>
        )
      )}
    </div>
  );
}
