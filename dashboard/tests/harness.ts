/**
 * `test` whose pages fail it with any error in the console, any exception and anything the content security policy refused.
 * `DASHBOARD_DIST=1` serves dist/ instead of what the program carries, to work on pages without building the program.
 */
import { test as plain, expect, type Browser, type BrowserContext, type Page } from '@playwright/test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

export { expect };
export const FLEET = '/api/argosy/v1';
export const BASE = '/api/hyperfleet/v1';

/** What waits for machines, adapters and drains has this long, on a busy machine. */
export const MACHINES_MS = 60_000;

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

export const test = plain.extend<{ troubles: Troubles; open: (browser: Browser, options?: Parameters<Browser['newContext']>[0]) => Promise<Page> }>({
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

async function prepare(context: BrowserContext, troubles: Troubles): Promise<void> {
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

/** The document in the editor with one text in it exchanged. */
export async function rewrite(page: Page, from: string, to: string): Promise<void> {
  const editor = page.getByRole('textbox', { name: /^YAML of/ });
  await expect(editor).toBeVisible();
  const text = await editor.inputValue();
  expect(text).toContain(from);
  await editor.fill(text.replace(from, to));
}
