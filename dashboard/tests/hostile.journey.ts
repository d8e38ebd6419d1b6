/** What machines and people can put into names, labels, messages and reasons is shown, and does nothing. */
import { BASE, expect, FLEET, live, MACHINES_MS, test, walkTo } from './harness';
import { Server } from './server';

const HTML = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>';
const ANSI = '\u001b[31mred\u001b[0m \u001b]0;title\u0007';
const RTL = 'a\u202egnp.exe\u202c\u200f\u2066x\u2069';
const LONG = `long-${'x'.repeat(10_000)}`;
const ZALGO = `z${'\u0301'.repeat(300)}`;

let server: Server;

test.beforeAll(async () => {
  server = await Server.plain();
  const rpc = (method: string, body: unknown) => server.call('POST', `/navarch.ControlPlaneService/${method}`, body);
  await rpc('RegisterNode', {
    nodeId: 'gpu-1', provider: 'gcp', region: HTML, zone: RTL, instanceType: 'a3-highgpu-8g',
    gpus: [{ index: 0, uuid: 'GPU-1', name: `${HTML}${RTL}` }],
    metadata: { hostname: HTML, kernelVersion: RTL, labels: { pool: 'train' } },
  });
  for (const [i, message] of [HTML, ANSI, RTL, LONG, ZALGO].entries()) {
    await rpc('ReportHealth', {
      nodeId: 'gpu-1',
      results: [{ checkName: 'gpu', status: 'HEALTH_STATUS_UNHEALTHY', message }],
      events: [{ gpuIndex: 0, gpuUuid: 'GPU-1', system: 'HEALTH_WATCH_SYSTEM_DRIVER', eventType: 'HEALTH_EVENT_TYPE_XID', metrics: { xid_code: String(31 + i) }, message }],
    });
  }
  await server.call('POST', `${BASE}/clusters`, { name: 'odd', labels: { note: 'fine' }, spec: { provider: 'gcp', region: 'us-east1', html: HTML, ansi: ANSI, rtl: RTL, long: LONG } });
  await server.call('PUT', `${FLEET}/safety/pause`, { reason: `${HTML}${RTL}` });
});
test.afterAll(async () => {
  await server?.stop();
});

const PAGES = [
  '/', '/?view=table', '/nodes', '/nodes/gpu-1', '/nodes/gpu-1?tab=why', '/nodes/gpu-1?tab=timeline', '/nodes/gpu-1?tab=yaml', '/events', '/audit', '/safety', '/clusters/odd',
  '/clusters/odd?tab=yaml',
];

for (const path of PAGES) {
  test(`nothing hostile happens at ${path}`, async ({ same: page }) => {
    await walkTo(page, `${server.url}/ui${path}`);
    await live(page);
    await expect(page.locator('main')).not.toContainText('Reading', { timeout: MACHINES_MS });
    await expect(page.getByRole('region', { name: 'Safety' })).toContainText('<img src=x');
    expect(await page.evaluate(() => (window as unknown as { owned?: number }).owned)).toBeUndefined();
    const found = await page.evaluate(() => ({
      // No picture and no script that we did not put there.
      planted: document.querySelectorAll('img[src="x"], main script').length,
      text: document.body.innerText,
      title: document.title,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    }));
    expect(found.planted).toBe(0);
    const raw = /.{0,40}[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200e\u200f].{0,20}/g;
    expect([...`${found.title}\n${found.text}`.matchAll(raw)].map(([where]) => JSON.stringify(where))).toEqual([]);
    expect(found.wide, 'the page does not get wider than the window').toBeLessThanOrEqual(1);
    expect(found.text.length, 'ten thousand letters are not all shown at once').toBeLessThan(60_000);
  });
}

test('what was hidden in a text is made visible', async ({ page }) => {
  await page.goto(`${server.url}/ui/nodes/gpu-1?tab=timeline`);
  await expect(page.locator('main')).toContainText('⟨U+202E⟩');
  await expect(page.locator('main')).toContainText('<img src=x onerror=');
  await page.goto(`${server.url}/ui/clusters/odd`);
  await expect(page.locator('main')).toContainText('␛[31mred');
});

test('a hostile address is only text', async ({ page }) => {
  await page.goto(`${server.url}/ui/odd/${encodeURIComponent(`${HTML}${RTL}`)}`);
  await expect(page.getByRole('heading', { name: 'There is no page here' })).toBeVisible();
  expect(await page.evaluate(() => (window as unknown as { owned?: number }).owned)).toBeUndefined();
});
