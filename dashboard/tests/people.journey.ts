/** Who may see and do what, with authentication and teams. */
import type { Page } from '@playwright/test';
import { BASE, expect, FLEET, live, REFUSALS, test } from './harness';
import { Server } from './server';

let server: Server;
let tokens: Record<'root' | 'ann' | 'bob' | 'vic', string>;

test.beforeAll(async () => {
  ({ server, tokens } = await Server.withTokens({
    root: { role: 'admin' },
    ann: { role: 'operator', teams: ['alpha'] },
    bob: { role: 'operator', teams: ['beta'] },
    vic: { role: 'viewer', teams: ['alpha'] },
  }));
  for (const [name, team] of [['alpha-train', 'alpha'], ['beta-serve', 'beta'], ['commons', '']] as const) {
    await server.call('POST', `${BASE}/clusters`, { name, labels: team ? { team } : {}, spec: { provider: 'gcp', region: 'us-east1' } }, tokens.root);
  }
  await server.call('POST', '/navarch.ControlPlaneService/RegisterNode', { nodeId: 'gpu-1', provider: 'gcp', region: 'us-east1', gpus: [{ index: 0, uuid: 'GPU-1', name: 'NVIDIA H100' }] }, tokens.root);
});
test.afterAll(async () => {
  await server?.stop();
});
// The first answer of a server that wants a token is a refusal, and the browser says so.
test.beforeEach(({ troubles }) => troubles.allow(REFUSALS));

async function signIn(page: Page, token: string, path = '/clusters'): Promise<void> {
  await page.goto(`${server.url}/ui${path}`);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await live(page);
}

test('a wrong token is refused with a reason, a good one opens the page that was asked for', async ({ page }) => {
  await page.goto(`${server.url}/ui/clusters`);
  await expect(page.getByRole('heading', { name: 'Sign in to Argosy' })).toBeVisible();
  await page.getByLabel('Token').fill('not-a-token');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('401');
  await page.getByLabel('Token').fill(tokens.root);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page).toHaveURL(/\/ui\/clusters$/);
  await expect(page.getByRole('table', { name: 'Clusters' })).toContainText('beta-serve');
  // The token stays with the tab, and never gets into an address.
  await page.reload();
  await expect(page.getByRole('table', { name: 'Clusters' })).toContainText('alpha-train');
  expect(page.url()).not.toContain(tokens.root);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in to Argosy' })).toBeVisible();
});

test('a viewer sees no button that changes something', async ({ page }) => {
  await signIn(page, tokens.vic);
  await expect(page.getByRole('table', { name: 'Clusters' })).toContainText('alpha-train');
  const actions = page.getByRole('button', { name: /^(?:Cordon|Drain|Terminate|Diagnose|Delete|Pause$|Resume|Apply|Edit)/ });
  const create = page.getByRole('link', { name: /^(?:Create|Add|Write)/ });
  for (const path of ['/clusters', '/clusters/alpha-train', '/clusters/alpha-train?tab=yaml', '/nodes/gpu-1', '/policies', '/pools', '/safety', '/instances']) {
    await page.goto(`${server.url}/ui${path}`);
    await live(page);
    await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible();
    await expect(page.locator('.who')).toContainText('Viewer');
    await expect(actions, path).toHaveCount(0);
    await expect(create, path).toHaveCount(0);
  }
  await page.goto(`${server.url}/ui/create/cluster`);
  await expect(page.getByText('Your role may look at this, and not change it')).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('pause');
  await expect(page.getByRole('option', { name: 'Pause automatic action' })).toHaveCount(0);
  // An operator on the same page has them: the test can fail.
  const other = await page.context().newPage();
  await signIn(other, tokens.ann, '/nodes/gpu-1');
  await expect(other.getByRole('button', { name: 'Drain…' })).toBeVisible();
});

test('a team sees its own and what is everybody’s, and nothing of the other team', async ({ browser, open, troubles }) => {
  troubles.allow(REFUSALS);
  for (const [who, own, others] of [['ann', 'alpha-train', 'beta-serve'], ['bob', 'beta-serve', 'alpha-train']] as const) {
    const page = await open(browser);
    await signIn(page, tokens[who]);
    const table = page.getByRole('table', { name: 'Clusters' });
    await expect(table).toContainText(own);
    await expect(table).toContainText('commons');
    await expect(table).not.toContainText(others);
    await expect(page.locator('tbody tr')).toHaveCount(2);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('e');
    await expect(page.getByRole('option', { name: own })).toBeVisible();
    await expect(page.getByRole('option', { name: others })).toHaveCount(0);
    await page.keyboard.press('Escape');
    // By its address, too: refused, with the reason and what to do.
    await page.goto(`${server.url}/ui/clusters/${others}`);
    await expect(page.getByRole('alert')).toContainText('403');
    await expect(page.getByRole('alert')).toContainText('Next:');
  }
});

test('what the other team makes does not come through the watch', async ({ page }) => {
  await signIn(page, tokens.ann);
  const table = page.getByRole('table', { name: 'Clusters' });
  await expect(table).toContainText('alpha-train');
  await server.call('POST', `${BASE}/clusters`, { name: 'beta-new', labels: { team: 'beta' }, spec: { provider: 'gcp', region: 'us-east1' } }, tokens.bob);
  await server.call('POST', `${BASE}/clusters`, { name: 'alpha-new', labels: { team: 'alpha' }, spec: { provider: 'gcp', region: 'us-east1' } }, tokens.ann);
  // Made later and seen: so the other would have been seen by now.
  await expect(table).toContainText('alpha-new');
  await expect(table).not.toContainText('beta-new');
  expect((await server.call<{ role: string }>('GET', `${FLEET}/me`, undefined, tokens.ann)).role).toBe('Operator');
});
