/**
 * `test` whose pages fail it with any error in the console, any exception and anything the content security policy refused.
 * `DASHBOARD_DIST=1` serves dist/ instead of what the program carries, to work on pages without building the program.
 */
import { test as plain, expect, type Browser, type BrowserContext, type Page } from '@playwright/test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export { expect };
export const FLEET = '/api/argosy/v1';
export const BASE = '/api/hyperfleet/v1';

/** What waits for machines, adapters and drains has this long, on a busy machine. */
export const MACHINES_MS = 60_000;
const LOOK_MS = 100;

const DIST = resolve(import.meta.dirname, '../dist');
const TYPES: Record<string, string> = { js: 'text/javascript', css: 'text/css', html: 'text/html', svg: 'image/svg+xml', woff2: 'font/woff2' };
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** What a browser says by itself about answers that are no success; whether they are shown well is what tests look at. */
const NETWORK = /^Failed to load resource: (?:the server responded with a status of|net::ERR_(?:CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|ABORTED))/;

export interface Troubles {
  list: string[];
  /** Answers of these statuses, and lost connections, are what the test is about. */
  allow: (what: RegExp) => void;
}

interface Fixtures {
  troubles: Troubles;
  open: (browser: Browser, options?: Parameters<Browser['newContext']>[0]) => Promise<Page>;
  /** One page for all tests of a file that only look, walked by `walkTo`: opening and loading another takes a second each. */
  same: Page;
}

/** The page that the tests of one file share, and what its console said. */
interface Kept {
  file: string;
  context?: BrowserContext;
  page?: Page;
  said: string[];
}

export const test = plain.extend<Fixtures, { kept: Kept }>({
  kept: [
    async ({}, use) => {
      const kept: Kept = { file: '', said: [] };
      await use(kept);
      await kept.context?.close();
    },
    { scope: 'worker' },
  ],
  same: async ({ kept, browser, troubles }, use, { file }) => {
    if (kept.file !== file || !kept.page) {
      // Another file has another server.
      await kept.context?.close();
      kept.file = file;
      kept.said = [];
      kept.context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      await prepare(kept.context, { list: kept.said });
      kept.page = await kept.context.newPage();
    }
    const before = kept.said.length;
    await use(kept.page);
    troubles.list.push(...kept.said.slice(before));
  },
  troubles: async ({}, use) => {
    const list: string[] = [];
    const allowed: RegExp[] = [];
    await use({ list, allow: (what) => allowed.push(what) });
    expect(
      list.filter((one) => !allowed.some((what) => what.test(one))),
      'errors in the console, exceptions, and what the content security policy refused',
    ).toEqual([]);
  },
  context: async ({ context, troubles }, use) => {
    await prepare(context, troubles);
    await use(context);
  },
  open: async ({ troubles }, use) => {
    const opened: BrowserContext[] = [];
    await use(async (browser, options = {}) => {
      const context = await browser.newContext(options);
      opened.push(context);
      await prepare(context, troubles);
      return context.newPage();
    });
    for (const context of opened) await context.close();
  },
});

async function prepare(context: BrowserContext, troubles: Pick<Troubles, 'list'>): Promise<void> {
  context.on('console', (message) => {
    if (message.type() === 'error') troubles.list.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on('weberror', (error) => troubles.list.push(`exception: ${error.error().stack ?? error.error().message}`));
  // The tour is for people; where it is tested it is started.
  await context.addInitScript(() => {
    try {
      localStorage.setItem('argosy.tour', 'done');
    } catch {
      // about:blank has no storage.
    }
    document.addEventListener('securitypolicyviolation', (event) => console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  if (process.env['DASHBOARD_DIST']) await context.route(/^http:\/\/127\.0\.0\.1:\d+\/ui(?:\/|$)/, (route) => {
    const wanted = join(DIST, decodeURIComponent(new URL(route.request().url()).pathname.slice(3)));
    const file = wanted.startsWith(DIST) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(DIST, 'index.html');
    return route.fulfill({ body: readFileSync(file), headers: { 'content-type': TYPES[file.split('.').at(-1) ?? ''] ?? 'text/plain', 'content-security-policy': CSP } });
  });
}

/** For tests in which answers are refused or the connection is cut: the browser's own lines about it are no trouble. */
export const REFUSALS = new RegExp(`console: ${NETWORK.source.slice(1)}`);

/** The stream is open and the shell knows who we are. */
export async function live(page: Page): Promise<void> {
  await expect(page.getByRole('status', { name: 'Connection: Live' })).toBeVisible();
}

/** Looks until it is so; for what goes on beside the tests, where `expect` has no place. */
export async function until(so: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 2 * MACHINES_MS;
  while (!(await so())) {
    if (Date.now() > end) throw new Error(`it is not so that ${what}`);
    await pause(LOOK_MS);
  }
}

/**
 * To another page of the same server as a link leads there, without loading anything anew. By way of an address that
 * no page has, so that nothing of the page before, such as an open dialog, is taken for the next.
 */
export async function walkTo(page: Page, address: string): Promise<void> {
  if (!page.url().startsWith(`${new URL(address).origin}/ui`)) {
    await page.goto(address);
    return;
  }
  const go = (to: string) =>
    page.evaluate((where) => {
      history.pushState(null, '', where);
      dispatchEvent(new PopStateEvent('popstate'));
    }, to);
  await page.keyboard.press('Escape');
  await go(new URL('/ui/between/pages', address).href);
  await expect(page.getByRole('heading', { name: 'There is no page here' })).toBeVisible();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await go(address);
}

/** The document in the editor with one text in it exchanged. */
export async function rewrite(page: Page, from: string, to: string): Promise<void> {
  const editor = page.getByRole('textbox', { name: /^YAML of/ });
  await expect(editor).toBeVisible();
  const text = await editor.inputValue();
  expect(text).toContain(from);
  await editor.fill(text.replace(from, to));
}
