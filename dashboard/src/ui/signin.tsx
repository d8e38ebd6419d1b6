/** The server wants to know who we are. */
import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { asProblem, type Problem } from '../lib/api';
import { loadMe } from '../lib/me';
import { setToken, signInWanted, token } from '../lib/session';
import { ErrorBox, Text } from './basics';

export function SignIn({ why }: { why: string }) {
  const value = useSignal('');
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  const id = useId();

  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    problem.value = null;
    setToken(value.value.trim());
    // Signed in only when the server says so: until then this page stays.
    signInWanted.value = why;
    try {
      await loadMe();
      signInWanted.value = null;
    } catch (thrown) {
      setToken('');
      signInWanted.value = why;
      problem.value = asProblem(thrown);
    } finally {
      busy.value = false;
    }
  };

  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>Sign in to Argosy</h1>
        <p class="muted">
          {token.peek() === '' ? 'This server wants to know who you are.' : <Text value={why} max={300} />}
        </p>
        <label for={id}>Token</label>
        <input
          id={id}
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          value={value.value}
          onInput={(event) => (value.value = event.currentTarget.value)}
        />
        <button type="submit" class="button button-primary" disabled={busy.value || value.value.trim() === ''}>
          {busy.value ? 'Signing in…' : 'Sign in'}
        </button>
        {problem.value && <ErrorBox problem={problem.value} />}
        <p class="muted">
          It stays in this tab until the tab is closed. An administrator makes one with <code>argosy token new --name you --role operator</code>.
        </p>
      </form>
    </main>
  );
}
