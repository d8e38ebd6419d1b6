/** The server dies under an open page, and comes back. */
import { BASE, expect, live, MACHINES_MS, REFUSALS, test } from './harness';
import { Server } from './server';

let server: Server;

test.beforeAll(async () => {
  server = await Server.plain();
});
test.afterAll(async () => {
  await server?.stop();
});

test('a server that is killed is shown as lost, and the page goes on without a reload', async ({ page, troubles }) => {
  troubles.allow(REFUSALS);
  troubles.allow(/net::ERR_/);
  await server.call('POST', `${BASE}/clusters`, { name: 'before', spec: { provider: 'gcp', region: 'us-east1' } });
  await page.goto(`${server.url}/ui/clusters`);
  await live(page);
  const table = page.getByRole('table', { name: 'Clusters' });
  await expect(table).toContainText('before');
  await page.evaluate(() => ((window as unknown as { mark: string }).mark = 'the same page'));

  const killedAt = Date.now();
  await server.kill();
  await expect(page.getByRole('alert')).toContainText('The connection to the server is lost', { timeout: 60_000 });
  console.log(`lost after ${Date.now() - killedAt} ms`);
  await expect(page.locator('html')).toHaveAttribute('data-connection', 'lost');
  // What was known stays to be read.
  await expect(table).toContainText('before');

  await server.restart();
  await live(page);
  await expect(page.getByRole('alert')).toBeHidden();
  // The watch goes on: what is made now comes by itself.
  await server.call('POST', `${BASE}/clusters`, { name: 'after', spec: { provider: 'gcp', region: 'us-east1' } });
  await expect(table).toContainText('after', { timeout: MACHINES_MS });
  expect(await page.evaluate(() => (window as unknown as { mark?: string }).mark)).toBe('the same page');
});
