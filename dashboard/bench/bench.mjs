// Measures the built dashboard in a real browser, without a server: bundle size, first contentful paint on loopback,
// frames per second of the map, and what the page holds after streaming. `npm run build` first. `--minutes 10` streams
// for ten minutes instead of a quarter of one; `--headed` shows it.
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium } from '@playwright/test';

const DIST = new URL('../dist', import.meta.url).pathname;
const TYPES = { js: 'text/javascript', css: 'text/css', html: 'text/html', svg: 'image/svg+xml', woff2: 'font/woff2' };
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const minutes = Number(process.argv[process.argv.indexOf('--minutes') + 1]) || 0.25;

if (!existsSync(join(DIST, 'index.html'))) {
  console.error('There is no dist/: run `npm run build` first.');
  process.exit(1);
}

/** Every file, gzipped where that helps, as the server sends it. */
function sizes() {
  const files = readdirSync(DIST, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(DIST, name)).isFile());
  const size = (name) => (name.endsWith('.woff2') ? statSync(join(DIST, name)).size : gzipSync(readFileSync(join(DIST, name)), { level: 9 }).length);
  const sum = (list) => list.reduce((total, name) => total + size(name), 0);
  return {
    all: sum(files),
    code: sum(files.filter((name) => /\.(js|css|html)$/.test(name))),
    fonts: sum(files.filter((name) => name.endsWith('.woff2'))),
  };
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (pathname.startsWith('/ui')) {
    const wanted = join(DIST, pathname.slice(3));
    const file = wanted.startsWith(DIST) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(DIST, 'index.html');
    response.writeHead(200, { 'content-type': TYPES[file.split('.').at(-1)] ?? 'text/plain', 'content-security-policy': CSP });
    createReadStream(file).pipe(response);
    return;
  }
  response.writeHead(pathname === '/healthz' ? 200 : 503, { 'content-type': 'application/json' });
  response.end('{}');
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${server.address().port}/ui`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: !process.argv.includes('--headed'),
  args: ['--no-sandbox', '--enable-precise-memory-info'],
});
try {
  const size = sizes();
  const kb = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
  console.log(`bundle, gzipped          ${kb(size.all)} (code and styles ${kb(size.code)}, fonts ${kb(size.fonts)})`);

  const paints = [];
  for (let i = 0; i < 5; i += 1) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(`${base}/nodes`);
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
    await page.close();
  }
  paints.sort((a, b) => a - b);
  console.log(`first contentful paint   ${paints[2].toFixed(0)} ms (median of 5, cold cache, loopback)`);

  const opened = async (colour) => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const errors = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await page.goto(`${base}/bench?gpus=80000&updates=1000&color=${colour}`);
    await page.waitForSelector('#bench');
    // The first seconds are for laying out.
    await page.waitForTimeout(3000);
    const closed = async () => {
      if (errors.length > 0) throw new Error(errors.join('\n'));
      await page.close();
    };
    return { page, closed };
  };

  for (const colour of ['health', 'temperature']) {
    const { page, closed } = await opened(colour);
    await page.waitForTimeout(Math.min(minutes, 1) * 60_000);
    const data = await page.locator('#bench').evaluate((element) => ({ ...element.dataset }));
    console.log(
      `map by ${colour.padEnd(12)}      ${data.fps} frames a second for ${data.seconds} s, longest ${data.worst} ms, ${data.updates} updates a second ` +
        `(${data.busy} ms of each second)`,
    );
    await closed();
  }

  // A page of its own: collecting garbage stops it, which is no frame of the map.
  const { page, closed } = await opened('health');
  const inspector = await page.context().newCDPSession(page);
  await inspector.send('Performance.enable');
  // What is still held when everything that can go is gone: a leak, and nothing else, makes it grow.
  const held = async () => {
    await inspector.send('HeapProfiler.collectGarbage');
    const { metrics } = await inspector.send('Performance.getMetrics');
    const of = (name) => metrics.find((one) => one.name === name)?.value ?? 0;
    return `${(of('JSHeapUsedSize') / 1024 / 1024).toFixed(2)} MiB, ${of('Nodes')} elements, ${of('JSEventListeners')} listeners`;
  };
  const started = Date.now();
  for (const share of [0, 0.1, 0.3, 0.5, 1]) {
    const until = started + share * minutes * 60_000;
    await page.waitForTimeout(Math.max(0, until - Date.now()));
    console.log(`memory of the page       ${await held()} after ${(share * minutes).toFixed(2)} min of streaming`);
  }
  await closed();
} finally {
  await browser.close();
  server.close();
}
