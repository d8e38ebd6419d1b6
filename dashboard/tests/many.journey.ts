/** Five thousand nodes. */
import { expect, FLEET, live, MACHINES_MS, test } from './harness';
import { Server } from './server';

const NODES = 5_000;
/** The best of so many is printed: more, where it is for the figure. */
const TRIES = Number(process.env['TRIES'] ?? 1);
const ZONES = ['us-east1-b', 'us-east1-c', 'us-east1-d'];
const name = (i: number) => `gpu-${String(i).padStart(4, '0')}`;

let server: Server;

test.beforeAll(async () => {
  test.setTimeout(180_000);
  server = await Server.plain('log: { level: warn }\n');
  const register = (i: number) =>
    server.call('POST', '/navarch.ControlPlaneService/RegisterNode', {
      nodeId: name(i), provider: 'gcp', region: 'us-east1', zone: ZONES[i % 3], instanceType: 'a3-highgpu-8g',
      gpus: Array.from({ length: 8 }, (_, index) => ({ index, uuid: `GPU-${name(i)}-${index}`, name: 'NVIDIA H100 80GB HBM3' })),
      metadata: { hostname: name(i), labels: { pool: i % 2 ? 'train' : 'serve' } },
    });
  let next = 0;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      for (let i = next++; i < NODES; i = next++) await register(i);
    }),
  );
});
test.afterAll(async () => {
  await server?.stop();
});

test('5,000 nodes are filtered, and the last one is reached', async ({ page }) => {
  await page.goto(`${server.url}/ui/nodes`);
  await live(page);
  await expect(page.getByText('5,000 nodes')).toBeVisible({ timeout: MACHINES_MS });
  // Few of them are in the page, and the last one is reached all the same.
  expect(await page.locator('tbody tr[data-row]').count()).toBeLessThan(200);

  const box = page.getByRole('searchbox', { name: 'Search nodes' });
  const filtered: [string, string, string][] = [
    [name(4321), '1 node found', name(4321)],
    ["zone = 'us-east1-c' and pool = 'train'", '834 nodes found', name(1)],
    ['gpu-49', '100 nodes found', name(4900)],
  ];
  // Printed, not judged: the machine may be busy with something else.
  const took: number[] = [];
  for (const [text, found, first] of filtered) {
    const tries: number[] = [];
    for (let i = 0; i < TRIES; i += 1) {
      await box.fill('');
      await expect(page.getByText('5,000 nodes')).toBeVisible();
      // In the page's own clock, from the key to the rows: what a person waits for, without the test's round trips.
      const ms = await page.evaluate(
        ({ text, found, first }) =>
          new Promise<number>((done, fail) => {
            const input = document.querySelector<HTMLInputElement>('input[type=search]');
            const from = performance.now();
            const look = () => {
              const there = document.querySelector('.page-head .kicker')?.textContent?.startsWith(found) && document.querySelector('tbody tr[data-row="0"]')?.textContent?.includes(first);
              if (there) done(performance.now() - from);
              else if (performance.now() - from > 60_000) fail(new Error(`not found: ${text}: ${document.querySelector('.page-head')?.textContent}`));
              else requestAnimationFrame(look);
            };
            if (!input) return fail(new Error('no box'));
            input.value = text;
            input.dispatchEvent(new Event('input', { bubbles: true }));
            look();
          }),
        { text, found, first },
      );
      tries.push(ms);
    }
    took.push(Math.min(...tries));
  }
  console.log(`filtered 5,000 nodes in ${took.map((ms) => `${Math.round(ms)} ms`).join(', ')}`);

  await box.fill('');
  await expect(page.getByText('5,000 nodes')).toBeVisible();
  await page.locator('tbody tr[data-row="0"] a').focus();
  await page.keyboard.press('End');
  await expect(page.getByRole('link', { name: name(NODES - 1) })).toBeFocused();
});

test('the map has all of their 40,000 GPUs', async ({ page }) => {
  await page.goto(`${server.url}/ui/`);
  await expect(page.getByRole('region', { name: 'The fleet in numbers' })).toContainText('40,000', { timeout: MACHINES_MS });
  const { total } = await server.call<{ total: number }>('GET', `${FLEET}/nodes?size=1`);
  expect(total).toBe(NODES);
});

test('a drain is judged against the budget of the whole pool', async ({ page }) => {
  await page.goto(`${server.url}/ui/nodes/${name(1)}`);
  await page.getByRole('button', { name: 'Drain…' }).click();
  await expect(page.getByRole('dialog').getByRole('region', { name: 'Plan' })).toContainText('Disruption budget, pool train: 1 node may be out of service, 0 are, and 1 is asked for');
});
