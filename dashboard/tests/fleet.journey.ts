/** What an operator does in a day, in the fleet that `argosy up` makes. */
import { expect, FLEET, live, MACHINES_MS, REFUSALS, test } from './harness';
import { Server } from './server';

interface Node {
  id: string;
  pool: string;
  status: string;
}

let server: Server;

test.beforeAll(async () => {
  server = await Server.demo(24);
});
test.afterAll(async () => {
  await server?.stop();
});

/** A node of the pool that is in service, and nobody's patient yet. */
async function wellNode(pool: string): Promise<Node> {
  let found: Node | undefined;
  await expect
    .poll(
      async () => {
        const search = encodeURIComponent(`pool = '${pool}' and status = 'ACTIVE' and health = 'healthy' and liveness = 'Fresh'`);
        const { items } = await server.call<{ items: Node[] }>('GET', `${FLEET}/nodes?size=10&search=${search}`);
        found = items[0];
        return found?.id;
      },
      { timeout: MACHINES_MS, message: `a well node in ${pool}` },
    )
    .toBeTruthy();
  return found as Node;
}

test('a cluster is created through the form and becomes Ready before our eyes', async ({ page }) => {
  await page.goto(`${server.url}/ui/clusters`);
  await live(page);
  await page.getByRole('link', { name: 'Create a cluster' }).click();
  const name = page.getByLabel('Name', { exact: true });
  await name.fill('Not A Name');
  await expect(page.getByRole('alert').first()).toBeVisible();
  await name.fill('delta');
  await page.getByLabel('Provider').selectOption('gcp');
  await page.getByLabel('Region').selectOption('us-east1');
  await page.getByLabel('Labels').fill('team=ml');
  await expect(page.getByText('argosy cluster create delta --provider gcp --region us-east1 -l team=ml --wait')).toBeVisible();
  await expect(page.getByText('The server would take it.')).toBeVisible();
  await page.getByRole('button', { name: 'Create the cluster' }).click();

  await expect(page).toHaveURL(/\/ui\/clusters\/delta$/);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('delta');
  // Not reloaded: it is the watch that says it.
  await expect(page.locator('.page-head .badge')).toHaveText(/Ready/, { timeout: MACHINES_MS });
  await expect(page.locator('.page-head .badge')).not.toHaveText(/Not Ready/);
});

test('a GPU falls off its bus: cordoned, drained, replaced, and the page says why', async ({ page }) => {
  const node = await wellNode('borealis.h100');
  await page.goto(`${server.url}/ui/`);
  await live(page);
  await server.call('POST', `/simulated-cloud/v1/machines/${node.id}/inject`, { what: 'xid:79 gpu:3' });

  const attention = page.getByRole('region', { name: 'Needs attention' });
  await attention.getByRole('link', { name: node.id }).first().click({ timeout: MACHINES_MS });
  const state = page.locator('.node-states .badge').first();
  await expect(state).toHaveText(/Cordoned|Draining|Terminated/, { timeout: MACHINES_MS });
  await expect(page.locator('.node-lead').getByText(/^\S+ takes its place\.$/)).toBeVisible({ timeout: MACHINES_MS });
  await expect(state).toHaveText('Terminated', { timeout: MACHINES_MS });

  await page.getByRole('link', { name: 'Read the whole story' }).click();
  const story = page.locator('.story');
  await expect(story).toContainText('Something happened');
  await expect(story).toContainText('Xid');
  await expect(story).toContainText('Argosy decided');
  await expect(story).toContainText('It was done');
  await expect(page.locator('.why-times')).toContainText('after the first sign');

  await page.getByRole('link', { name: 'Fleet', exact: true }).click();
  const lately = page.getByRole('region', { name: 'Lately, by itself' });
  await expect(lately.getByRole('link', { name: node.id })).toBeVisible({ timeout: MACHINES_MS });
});

test('a node is drained from its page, after its plan', async ({ page }) => {
  const node = await wellNode('atlas.h100');
  await page.goto(`${server.url}/ui/nodes/${node.id}`);
  await page.getByRole('button', { name: 'Drain…' }).click();
  const dialog = page.getByRole('dialog');
  const plan = dialog.getByRole('region', { name: 'Plan' });
  await expect(plan).toContainText(`${node.id}: Active → Draining`);
  await expect(plan).toContainText('8 GPUs out of service');
  await expect(plan).toContainText(/Disruption budget, pool atlas\.h100: \d+ nodes? may be out of service, \d+ (is|are).*, and 1 (more )?is asked for/);
  await expect(plan).toContainText('The server has checked it: it would be accepted.');
  await dialog.getByLabel(/^Reason/).fill('a new cable');
  await expect(dialog.getByText(`argosy node drain ${node.id} --drain-for 3600s --reason 'a new cable'`)).toBeVisible();
  // The plan is only a plan: nothing has happened yet.
  expect((await server.call<Node>('GET', `${FLEET}/nodes/${node.id}`)).status).toBe('ACTIVE');
  await dialog.getByRole('button', { name: 'Drain', exact: true }).click();

  await expect(dialog).toBeHidden();
  await expect(page.locator('.node-states .badge').first()).toHaveText(/Draining|Cordoned/, { timeout: MACHINES_MS });
  await page.getByRole('navigation', { name: 'Parts of this page' }).getByRole('link', { name: 'Commands' }).click();
  await expect(page.getByRole('table', { name: 'Commands' })).toContainText('a new cable');
});

test('the pause button asks why, and the reason is there for everybody', async ({ page }) => {
  await page.goto(`${server.url}/ui/nodes`);
  const strip = page.getByRole('region', { name: 'Safety' });
  await strip.getByRole('button', { name: 'Pause' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('button', { name: 'Pause', exact: true })).toBeDisabled();
  await dialog.getByLabel(/^Why/).fill('network maintenance');
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(strip).toContainText('network maintenance');
  expect(server.cli('safety')).toContain('network maintenance');
  await strip.getByRole('button', { name: 'Resume' }).click();
  await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
  await expect(strip.getByRole('button', { name: 'Pause' })).toBeVisible();
});

test('what is in the address survives a reload', async ({ page }) => {
  const node = await wellNode('atlas.a100');
  const links: [string, () => Promise<void>][] = [
    ["/nodes?q=pool+%3D+%27atlas.a100%27&sort=-id", async () => {
      await expect(page.getByRole('searchbox', { name: 'Search nodes' })).toHaveValue("pool = 'atlas.a100'");
      await expect(page.getByRole('columnheader', { name: 'Node' })).toHaveAttribute('aria-sort', 'descending');
    }],
    [`/nodes/${node.id}?tab=yaml`, () => expect(page.getByText('instance_type').first()).toBeVisible()],
    ['/?group=zone&color=temperature', async () => {
      await expect(page.getByRole('group', { name: 'Group by' }).getByRole('button', { name: 'zone' })).toHaveAttribute('aria-pressed', 'true');
      await expect(page.getByRole('group', { name: 'Colour by' }).getByRole('button', { name: 'temperature' })).toHaveAttribute('aria-pressed', 'true');
    }],
    ['/clusters/atlas?tab=yaml', () => expect(page.getByText('us-east1').first()).toBeVisible()],
    ['/instances?tab=money&by=provider', () => expect(page.getByRole('table', { name: 'Cost per hour' })).toContainText('gcp')],
    ['/clusters/comet/pools/rented', () => expect(page.getByRole('heading', { level: 1 })).toContainText('rented')],
  ];
  for (const [link, check] of links) {
    await page.goto(`${server.url}/ui${link}`);
    await check();
    await page.reload();
    await check();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe(`/ui${link}`);
  }
});

test('the palette finds a node, runs an action, and closes', async ({ page }) => {
  const node = await wellNode('atlas.h100');
  await page.goto(`${server.url}/ui/events`);
  await live(page);
  await page.keyboard.press('Control+k');
  const box = page.getByRole('combobox', { name: /^Go to/ });
  await expect(box).toBeFocused();
  await box.fill(node.id);
  await expect(page.getByRole('option', { name: node.id }).first()).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/ui/nodes/${node.id}$`));

  await expect(page.getByRole('button', { name: 'Cordon…' })).toBeVisible();
  await page.keyboard.press('Control+k');
  await box.fill(`cordon ${node.id}`);
  await expect(page.getByRole('option', { selected: true })).toContainText('ordon');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toContainText('What it will touch');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();

  await page.keyboard.press('Control+k');
  await box.fill('nothing is called like this');
  await expect(page.getByText('Nothing is called that.')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(box).toBeHidden();
});

test('from the fleet to a cordoned node and back, without a mouse', async ({ page }) => {
  const node = await wellNode('atlas.h100');
  await page.goto(`${server.url}/ui/`);
  await live(page);
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused();
  await page.keyboard.press('g');
  await page.keyboard.press('n');
  await expect(page.getByRole('table', { name: 'Nodes' })).toBeVisible();
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox', { name: 'Search nodes' })).toBeFocused();
  await page.keyboard.type(node.id);
  await page.keyboard.press('Enter');
  const link = page.getByRole('table', { name: 'Nodes' }).getByRole('link', { name: node.id });
  await expect(page.locator('tbody tr')).toHaveCount(1);
  for (let i = 0; i < 12 && !(await link.evaluate((element) => element === document.activeElement)); i += 1) await page.keyboard.press('Tab');
  await expect(link).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/ui/nodes/${node.id}`));

  const cordon = page.getByRole('button', { name: 'Cordon…' });
  await expect(cordon).toBeVisible();
  for (let i = 0; i < 60 && !(await cordon.evaluate((element) => element === document.activeElement)); i += 1) await page.keyboard.press('Tab');
  await expect(cordon).toBeFocused();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  const go = dialog.getByRole('button', { name: 'Cordon', exact: true });
  await expect(go).toBeEnabled();
  for (let i = 0; i < 12 && !(await go.evaluate((element) => element === document.activeElement)); i += 1) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(dialog).toBeHidden();
  await expect(page.locator('.node-states .badge').first()).toHaveText('Cordoned', { timeout: MACHINES_MS });
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: /shortcuts/i })).toBeVisible();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await expect(page).toHaveURL(/\/ui\/$/);
});

test('an unknown address gets a page that helps', async ({ page, troubles }) => {
  troubles.allow(REFUSALS);
  await page.goto(`${server.url}/ui/nodse/gpu-1`);
  await expect(page.getByRole('heading', { name: 'There is no page here' })).toBeVisible();
  await page.getByRole('main').getByRole('link', { name: 'Nodes', exact: true }).first().click();
  await expect(page.getByRole('table', { name: 'Nodes' })).toBeVisible();
  await page.goto(`${server.url}/ui/nodes/no-such-node`);
  await expect(page.getByText('There is no such node')).toBeVisible();
  await page.goto(`${server.url}/ui/clusters/no-such-cluster`);
  await expect(page.getByRole('alert')).toContainText('404');
  await expect(page.getByRole('alert')).toContainText('Next:');
  await page.goto(`${server.url}/ui/nodes?q=colour+%3D+'blue'`);
  await expect(page.getByRole('alert')).toContainText('colour');
});

test('the tour has five steps, and does not come back', async ({ page }) => {
  await page.goto(`${server.url}/ui/`);
  await page.getByRole('button', { name: 'Tour' }).click();
  for (let step = 1; step <= 5; step += 1) {
    await expect(page.getByRole('region', { name: `Tour, step ${step} of 5` })).toBeVisible();
    await page.getByRole('button', { name: step < 5 ? 'Next' : 'Done' }).click();
  }
  await expect(page.locator('.tour')).toBeHidden();
  await page.reload();
  await live(page);
  await expect(page.locator('.tour')).toBeHidden();
});

test('who goes quickly from page to page is not kept waiting by what was left behind', async ({ page }) => {
  const open = new Set<unknown>();
  page.on('request', (request) => void (request.url().includes('watch=true') && open.add(request)));
  for (const ended of ['requestfinished', 'requestfailed'] as const) page.on(ended as 'requestfinished', (request) => void open.delete(request));
  await page.goto(`${server.url}/ui/clusters`);
  for (const cluster of ['atlas', 'borealis', 'comet']) {
    await page.getByRole('table', { name: 'Clusters' }).getByRole('link', { name: cluster, exact: true }).click();
    await page.getByRole('table', { name: 'Node pools' }).locator('tbody tr').first().getByRole('link').click();
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Fleet' }).click();
    await expect(page.locator('.map-panel canvas').first()).toBeVisible();
    // A browser has six connections to a server, and what is no stream needs some. Left alone, streams linger for longer than this.
    await expect.poll(() => open.size, { timeout: 8_000 }).toBeLessThanOrEqual(4);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Clusters' }).click();
  }
});
