/** An address that is none of ours: say so, and offer the nearest. */
import { href } from '../lib/router';
import { ROUTES } from '../routes';
import { Text } from './basics';

export function NotFound({ path }: { path: string }) {
  const pages = ROUTES.filter((route) => route.nav);
  const first = `/${path.split('/')[1] ?? ''}`;
  const nearest = pages.find((route) => route.pattern !== '/' && (first.startsWith(route.pattern.slice(0, 4)) || route.pattern.startsWith(first)));
  return (
    <div class="not-found">
      <h1>There is no page here</h1>
      <p>
        <Text value={path} mono max={200} /> is not an address of this dashboard. It may be misspelt, or a link of another version.
      </p>
      {nearest && first !== '/' && (
        <p>
          Did you mean <a href={href(nearest.pattern)}>{nearest.title}</a>?
        </p>
      )}
      <p>Or go to</p>
      <ul>
        {pages.map((route) => (
          <li key={route.pattern}>
            <a href={href(route.pattern)}>{route.title}</a>
          </li>
        ))}
      </ul>
      <p class="muted">
        <kbd>Ctrl</kbd> <kbd>K</kbd> finds nodes, pools, clusters and pages by name.
      </p>
    </div>
  );
}
