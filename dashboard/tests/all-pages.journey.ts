/**
 * Every page in light and dark, at a desk and on a phone: axe finds nothing serious, and nothing overflows. With
 * `UPDATE_SCREENSHOTS=1` pictures of them are put into docs/images/ instead; nothing else writes there.
 *
 * The first file by its name, because it takes longest.
 */
import type { Page } from '@playwright/test';
import axe from 'axe-core';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BASE, expect, FLEET, live, MACHINES_MS, REFUSALS, rewrite, test, until, walkTo } from './harness';
import { withPalette } from './png';
import { Server } from './server';

const IMAGES = resolve(import.meta.dirname, '../../docs/images');
const DESK = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
const update = process.env['UPDATE_SCREENSHOTS'] === '1';

interface Node {
  id: string;
  status: string;
}

/** Names that only the running fleet knows. */
const names = { broken: '', well: '', instance: '' };
let server: Server;
/** What happens to the fleet, once it is over. */
let events: Promise<void>;

async function find(search: string): Promise<Node[]> {
  return (await server.call<{ items: Node[] }>('GET', `${FLEET}/nodes?size=50&search=${encodeURIComponent(search)}`)).items;
}

/** One node is replaced, and two others turn sick. */
async function happen(broken: Node | undefined, warned: Node | undefined, second: Node | undefined): Promise<void> {
  const inject = (node: Node | undefined, what: string) => server.call('POST', `/simulated-cloud/v1/machines/${node?.id}/inject`, { what });
  const status = async (id: string | undefined) => (await server.call<Node>('GET', `${FLEET}/nodes/${id}`)).status;
  await inject(broken, 'xid:79 gpu:3');
  await until(async () => (await status(broken?.id)) === 'TERMINATED', `${broken?.id} is replaced`);
  await inject(warned, 'xid:63 gpu:1');
  await inject(second, 'xid:48 gpu:5');
  await until(async () => (await status(names.well)) === 'CORDONED', `${names.well} is cordoned`);
}

test.beforeAll(async () => {
  test.setTimeout(240_000);
  // More for the pictures than for the rules.
  const nodes = Number(process.env['DEMO_NODES'] ?? (update ? 240 : 24));
  server = await Server.demo(nodes);
  let well: Node[] = [];
  const want = Math.floor(nodes * 0.8);
  await expect
    .poll(async () => (await server.call<{ total: number }>('GET', `${FLEET}/nodes?size=1&search=${encodeURIComponent("status = 'ACTIVE' and health = 'healthy'")}`)).total, { timeout: 120_000 })
    .toBeGreaterThanOrEqual(want);
  well = await find("pool = 'atlas.h100' and status = 'ACTIVE' and health = 'healthy'");
  const [broken, warned, second] = well;
  names.broken = broken?.id ?? '';
  names.well = well.at(-1)?.id ?? '';
  names.instance = names.well;
  await server.call('POST', `${FLEET}/nodes/${names.well}/commands`, { type: 'CORDON', reason: 'a look at its fans' });
  events = happen(broken, warned, second);
  // Whoever waits for it says so; until then nobody does.
  events.catch(() => undefined);
  if (update) {
    await events;
    // What a fleet is excused for in its first minute is not what it looks like.
    await until(async () => (await server.call<{ amnesty?: string }>('GET', `${FLEET}/safety`)).amnesty === undefined, 'the amnesty is over');
  }
  await server.call('POST', `${BASE}/clusters`, { name: 'dawn', labels: { team: 'research' }, spec: { provider: 'gcp', region: 'us-west1' } });
});
test.afterAll(async () => {
  await server?.stop();
});

interface Shown {
  name: string;
  path: string | (() => string);
  /** What must be there before it is looked at. */
  ready: (page: Page) => Promise<unknown>;
  /** There is a picture of it in the documents. */
  picture?: boolean;
  /** What the picture is about, where that is not at the top. */
  about?: string;
  /** Shows what happens to the fleet meanwhile. */
  late?: boolean;
}

const heading = (page: Page) => expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible();
const table = (name: string) => (page: Page) => expect(page.getByRole('table', { name }).locator('tbody tr').first()).toBeVisible({ timeout: MACHINES_MS });
const text = (wanted: string | RegExp) => (page: Page) => expect(page.locator('main').getByText(wanted).first()).toBeVisible({ timeout: MACHINES_MS });

const PAGES: Shown[] = [
  { name: 'fleet', path: '/', ready: (page) => expect(page.locator('.map-panel canvas').first()).toBeVisible(), picture: true, late: true },
  { name: 'fleet-heat', path: '/?group=zone&color=temperature', ready: (page) => expect(page.locator('.map-panel canvas').first()).toBeVisible(), picture: true, about: '.map-panel', late: true },
  { name: 'fleet-table', path: '/?view=table', ready: table('Every node with its GPUs'), late: true },
  { name: 'nodes', path: '/nodes', ready: table('Nodes'), picture: true },
  { name: 'node', path: () => `/nodes/${names.well}`, ready: (page) => expect(page.locator('.uplot').first()).toBeVisible(), picture: true },
  { name: 'node-why', path: () => `/nodes/${names.broken}?tab=why`, ready: text('Argosy decided'), picture: true, late: true },
  { name: 'node-timeline', path: () => `/nodes/${names.broken}?tab=timeline`, ready: (page) => expect(page.getByRole('list', { name: /^Timeline/ }).getByRole('listitem').first()).toBeVisible(), picture: true, late: true },
  { name: 'node-commands', path: () => `/nodes/${names.broken}?tab=commands`, ready: table('Commands'), late: true },
  { name: 'node-yaml', path: () => `/nodes/${names.well}?tab=yaml`, ready: text('instance_type') },
  {
    name: 'node-drain',
    path: () => `/nodes/${names.well}`,
    ready: async (page) => {
      await page.getByRole('button', { name: 'Drain…' }).click();
      await expect(page.getByText('it would be accepted')).toBeVisible();
    },
    picture: true,
  },
  { name: 'instances', path: '/instances', ready: text('1 cordoned'), picture: true, late: true },
  { name: 'instances-money', path: '/instances?tab=money', ready: text('1 cordoned'), picture: true, late: true },
  { name: 'instances-orphans', path: '/instances?tab=orphans', ready: text('There is no orphan') },
  { name: 'instances-providers', path: '/instances?tab=providers', ready: table('Providers') },
  { name: 'instance', path: () => `/instances/${names.instance}`, ready: text('In service'), picture: true },
  { name: 'clusters', path: '/clusters', ready: table('Clusters'), picture: true },
  { name: 'cluster', path: '/clusters/atlas', ready: text(/3 of 3 adapters done/), picture: true },
  { name: 'cluster-history', path: '/clusters/atlas?tab=history', ready: heading },
  { name: 'cluster-yaml', path: '/clusters/atlas?tab=yaml', ready: text('us-east1') },
  {
    name: 'cluster-edit',
    path: '/clusters/atlas?tab=yaml',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Edit…' }).click();
      await rewrite(page, 'team: ml', 'team: research\n  tier: gold');
      await expect(page.getByText('The server would take it.')).toBeVisible();
    },
    picture: true,
  },
  { name: 'pools', path: '/pools', ready: table('Node pools'), picture: true },
  { name: 'pool', path: '/clusters/comet/pools/rented', ready: text('What to do:'), picture: true },
  {
    name: 'create-cluster',
    path: '/create/cluster',
    ready: async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('epsilon');
      await page.getByLabel('Provider').selectOption('gcp');
      await page.getByLabel('Region').selectOption('us-east1');
      await expect(page.getByText('The server would take it.')).toBeVisible();
    },
    picture: true,
  },
  {
    name: 'create-pool',
    path: '/create/pool?cluster=atlas',
    ready: async (page) => {
      await expect(page.getByLabel('Cluster')).toHaveValue('atlas');
      await page.getByLabel('Name', { exact: true }).fill('trainers');
      await page.getByLabel('Machine type').selectOption('a3-highgpu-8g');
      await expect(page.getByText('The server would take it.')).toBeVisible();
    },
    picture: true,
  },
  {
    name: 'create-policy',
    path: '/create/policy',
    ready: async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('trainers');
      await rewrite(page, 'cluster.pool', 'atlas.h100');
      await expect(page.getByText('The server would take it.')).toBeVisible();
    },
    picture: true,
  },
  { name: 'policies', path: '/policies', ready: table('Policies'), picture: true },
  { name: 'policy', path: '/policies/default', ready: table('Rules'), picture: true },
  {
    name: 'policy-backtest',
    path: '/policies/default?tab=edit',
    ready: async (page) => {
      // What is only watched in the policy in force is to make a node sick.
      await rewrite(page, 'rules:\n', 'rules:\n- name: bad-rows\n  priority: 100\n  condition: has(xid.code) && xid.code == 63\n  result: unhealthy\n');
      await expect(page.getByText('The server would take it.')).toBeVisible();
      await page.getByRole('button', { name: 'Backtest' }).click();
      const changes = page.getByRole('table', { name: 'Nodes that would be treated otherwise' });
      await expect(changes.locator('tbody tr').first()).toBeVisible({ timeout: MACHINES_MS });
      await page.getByRole('textbox', { name: /^YAML of/ }).evaluate((editor) => editor.scrollTo(0, 0));
    },
    picture: true,
    about: '.backtest',
    late: true,
  },
  { name: 'events', path: '/events', ready: table('Events'), picture: true, late: true },
  { name: 'audit', path: '/audit', ready: table('Audit log'), picture: true },
  // Before the next one, which opens a report: it stays open.
  { name: 'simulations-empty', path: '/simulations', ready: text('Drop a report here') },
  {
    name: 'simulations',
    path: '/simulations',
    ready: async (page) => {
      await page.getByLabel('Report of a simulation').setInputFiles(join(import.meta.dirname, 'first-day.json'));
      await expect(page.getByRole('heading', { level: 1 })).toContainText('first-day');
    },
    picture: true,
  },
  { name: 'safety', path: '/safety', ready: text('Budgets'), picture: true },
  {
    name: 'palette',
    path: '/nodes',
    ready: async (page) => {
      // What is found in the fleet is what the page has heard of it.
      await table('Nodes')(page);
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill('h100');
      await expect(page.getByRole('option').first()).toBeVisible();
    },
    picture: true,
  },
  { name: 'not-found', path: '/nodse', ready: heading, picture: true },
];

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** Rows are alike; the first ones speak for the others. */
const LIKE_OTHERS = 'tbody tr:nth-child(n+5)';

/** No violation that keeps somebody out; moderate and minor ones are advice. */
async function accessible(page: Page, where: string): Promise<void> {
  // Put into the page once, and asked there: what drives axe from outside opens another page for each question.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  const bad = await page.evaluate(
    async ({ rules, others }) => {
      const { violations } = await (window as unknown as { axe: typeof axe }).axe.run({ exclude: [[others]] }, { runOnly: rules, resultTypes: ['violations'] });
      const told = (one: (typeof violations)[number]) => one.nodes.slice(0, 4).map((node) => `${node.target.join(' ')} ${node.any[0]?.message ?? node.all[0]?.message ?? ''}`);
      return violations.filter((one) => one.impact === 'serious' || one.impact === 'critical').map((one) => `${one.id} (${one.impact}): ${told(one).join('\n    ')}`);
    },
    { rules: RULES, others: LIKE_OTHERS },
  );
  expect.soft(bad, `axe at ${where}`).toEqual([]);
}

async function theme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await expect(page.locator('html')).toHaveAttribute('data-theme', colorScheme);
}

async function lookAt(page: Page, name: string): Promise<void> {
  await accessible(page, `${name}, light`);
  await theme(page, 'dark');
  await accessible(page, `${name}, dark`);
  await page.setViewportSize(PHONE);
  // Plots are as wide as their place, which they hear of after it was laid out.
  const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await expect.configure({ soft: true }).poll(tooWide, { message: `${name} is not wider than a phone` }).toBeLessThanOrEqual(1);
  await accessible(page, `${name}, phone`);
}

async function photograph(page: Page, name: string, about?: string): Promise<void> {
  for (const [size, word] of [[DESK, ''], [PHONE, '-phone']] as const) {
    await page.setViewportSize(size);
    await page.evaluate(() => scrollTo(0, 0));
    if (about) await page.locator(about).scrollIntoViewIfNeeded();
    for (const colours of ['light', 'dark'] as const) {
      await theme(page, colours);
      const png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
      writeFileSync(join(IMAGES, `${name}${word}-${colours}.png`), withPalette(png));
    }
  }
}

// What the fleet goes through takes as long as the pages that do not show it.
const order = update ? PAGES : [...PAGES.filter((one) => !one.late), ...PAGES.filter((one) => one.late)];

for (const { name, path, ready, picture = false, about, late = false } of order) {
  // A run for the pictures has ten times the nodes; the rules are looked at in every other.
  if (update && !picture) continue;
  test(`${name}: readable for everybody, in light and dark, at a desk and on a phone`, async ({ same: page, troubles }) => {
    if (name === 'policy') troubles.allow(REFUSALS);
    if (late) await events;
    await page.setViewportSize(DESK);
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
    await walkTo(page, `${server.url}/ui${typeof path === 'string' ? path : path()}`);
    await live(page);
    await ready(page);
    await (update ? photograph(page, name, about) : lookAt(page, name));
  });
}

test('sign-in: readable for everybody, in light and dark, at a desk and on a phone', async ({ page, troubles }) => {
  troubles.allow(REFUSALS);
  const { server: locked } = await Server.withTokens({ root: { role: 'admin' } });
  try {
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
    await page.goto(`${locked.url}/ui/`);
    await expect(page.getByRole('heading', { name: 'Sign in to Argosy' })).toBeVisible();
    await (update ? photograph(page, 'sign-in') : lookAt(page, 'sign-in'));
  } finally {
    await locked.stop();
  }
});
