/** The whole: sign-in, or the shell with the page that the address names. */
import { effect, useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { asProblem, type Problem } from './lib/api';
import { connection } from './lib/connection';
import { match, path, type Params } from './lib/router';
import { signInWanted } from './lib/session';
import { plain } from './lib/text';
import { ROUTES, type PageProps, type Route } from './routes';
import { ErrorBox, Spinner } from './ui/basics';
import { NotFound } from './ui/notfound';
import { Shell } from './ui/shell';
import { SignIn } from './ui/signin';
import { Toasts } from './ui/toast';

effect(() => {
  document.documentElement.dataset['connection'] = connection.value;
});

export function App() {
  return (
    <>
      {signInWanted.value === null ? (
        <Shell>
          <Page />
        </Shell>
      ) : (
        <SignIn why={signInWanted.value} />
      )}
      <Toasts />
    </>
  );
}

function found(at: string): { route: Route; params: Params } | null {
  for (const route of ROUTES) {
    const params = match(route.pattern, at);
    if (params) return { route, params };
  }
  return null;
}

const loaded = new Map<Route, ComponentType<PageProps>>();

function Page() {
  const at = path.value;
  const here = found(at);
  const problem = useSignal<Problem | null>(null);
  const ready = useSignal(0);
  const route = here?.route ?? null;

  const first = useRef(true);
  useEffect(() => {
    // Another page begins at its beginning, for keyboards and screen readers, too.
    if (!first.current) document.getElementById('main')?.focus({ preventScroll: true });
    first.current = false;
    problem.value = null;
    const name = here ? Object.values(here.params)[0] : null;
    document.title = `${name ? `${plain(name, 60)} · ` : ''}${route?.title ?? 'Not found'} · Argosy`;
    if (!route || loaded.has(route)) return;
    route
      .load()
      .then((module) => {
        loaded.set(route, module.default);
        ready.value += 1;
      })
      .catch((thrown: unknown) => {
        problem.value = {
          ...asProblem(thrown),
          title: 'This page could not be loaded',
          hint: 'The server may have been updated. Reload the page.',
        };
      });
  }, [at]);

  void ready.value;
  if (!here || !route) return <NotFound path={at} />;
  if (problem.value) return <ErrorBox problem={problem.value} onRetry={() => location.reload()} />;
  const Loaded = loaded.get(route);
  // The key: another node is another page, with nothing left of the one before.
  return Loaded ? <Loaded key={at} params={here.params} /> : <Spinner />;
}
