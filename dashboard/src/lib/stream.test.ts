import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { connection, heard, unheard } from './connection';
import { Live } from './live';

/** What one connection to the stream does: what it sends, and the hand that ends it. */
interface Line {
  url: string;
  send: (text: string) => void;
  end: () => void;
  aborted: () => boolean;
}

let lines: Line[] = [];
/** The answer to the next requests for a stream, if not a stream. */
let refusal: Response | null = null;
let healthy = true;
let offs: (() => void)[] = [];

const ADDED = 'event: ADDED\ndata: {"type":"ADDED","revision":1,"object":{"id":"a"}}\n\n';
const BOOKMARK = 'event: BOOKMARK\nid: 7\ndata: {"type":"BOOKMARK","revision":7}\n\n';

function answer(url: string, options?: RequestInit): Response | Promise<never> {
  if (url.startsWith('/healthz')) return healthy ? new Response('{}') : Promise.reject(new TypeError('no answer'));
  if (refusal) {
    const once = refusal;
    refusal = null;
    return once;
  }
  const encoder = new TextEncoder();
  let into: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (into = controller) });
  options?.signal?.addEventListener('abort', () => into?.error(new DOMException('aborted', 'AbortError')));
  lines.push({
    url,
    send: (text) => into?.enqueue(encoder.encode(text)),
    end: () => into?.close(),
    aborted: () => options?.signal?.aborted ?? false,
  });
  return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
}

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  refusal = null;
  healthy = true;
  vi.stubGlobal('document', { visibilityState: 'visible', addEventListener: () => undefined, removeEventListener: () => undefined });
  vi.stubGlobal('requestAnimationFrame', (act: () => void) => setTimeout(act, 16));
  vi.stubGlobal('fetch', (url: string, options?: RequestInit) => Promise.resolve().then(() => answer(url, options)));
  heard();
});

afterEach(async () => {
  // Streams linger for a while after nobody looks; the next test begins without them.
  healthy = true;
  for (const off of offs) off();
  offs = [];
  await settle(30_000);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const settle = (ms = 50) => vi.advanceTimersByTimeAsync(ms);

async function listed(): Promise<Live<{ id: string }>> {
  const live = new Live<{ id: string }>('/api/things');
  offs.push(live.use());
  await vi.waitFor(() => expect(lines.length).toBe(1));
  lines[0]?.send(ADDED + BOOKMARK);
  await vi.waitFor(() => expect([...live.items.keys()]).toEqual(['a']));
  return live;
}

it('a watch that breaks off is resumed where it was', async () => {
  const live = await listed();
  lines[0]?.end();
  await settle(2_000);
  expect(lines[1]?.url).toBe('/api/things?watch=true&resource_version=7');
  lines[1]?.send('event: DELETED\nid: 8\ndata: {"type":"DELETED","revision":8,"object":{"id":"a"}}\n\n');
  await vi.waitFor(() => expect(live.items.size).toBe(0));
});

it('a watch whose revision is not kept begins anew, and what is shown stays meanwhile', async () => {
  const live = await listed();
  refusal = new Response('{"title":"Gone","status":410,"detail":"list again"}', { status: 410 });
  lines[0]?.end();
  await settle(2_000);
  expect(lines[1]?.url).toBe('/api/things?watch=true');
  expect(live.items.size).toBe(1);
  expect(live.error.value).toBeNull();
  lines[1]?.send(BOOKMARK);
  await vi.waitFor(() => expect(live.items.size).toBe(0));
});

it('a watch that is silent for longer than its keep-alive is given up', async () => {
  await listed();
  await settle(30_000);
  lines[0]?.send(': still here\n\n');
  await settle(30_000);
  expect(lines.length).toBe(1);
  await settle(20_000);
  expect(lines[0]?.aborted()).toBe(true);
  expect(lines[1]?.url).toContain('resource_version=7');
});

it('what was open when the server was lost is connected again when it is back', async () => {
  await listed();
  healthy = false;
  unheard();
  await vi.waitFor(() => expect(connection.value).toBe('lost'));
  healthy = true;
  unheard();
  await vi.waitFor(() => expect(connection.value).toBe('live'));
  await settle(1_000);
  expect(lines[0]?.aborted()).toBe(true);
  expect(lines[1]?.url).toContain('resource_version=7');
});

it('what is refused is said, and asked for again only now and then', async () => {
  const live = new Live('/api/things');
  refusal = new Response('{"title":"Forbidden","status":403,"detail":"another team"}', { status: 403 });
  offs.push(live.use());
  await settle();
  expect(live.error.value?.detail).toBe('another team');
  await settle(4_000);
  expect(lines.length).toBe(0);
  await settle(8_000);
  expect(lines.length).toBe(1);
  await settle();
  expect(live.error.value).toBeNull();
});

it('a proxy that finds nobody behind it is not the server', async () => {
  await listed();
  healthy = false;
  refusal = new Response('Bad Gateway', { status: 502, headers: { 'Content-Type': 'text/plain' } });
  lines[0]?.end();
  await vi.waitFor(() => expect(connection.value).toBe('lost'));
});

it('who goes quickly from page to page leaves no more streams open than a browser can bear', async () => {
  for (let page = 0; page < 5; page += 1) {
    const offsOfPage = ['cluster', 'pools'].map((what) => new Live(`/api/${what}/${page}`).use());
    await settle();
    expect(lines.filter((line) => !line.aborted()).length).toBeLessThanOrEqual(4);
    for (const off of offsOfPage) off();
  }
  // The newest are those that somebody may come back to.
  expect(lines.filter((line) => !line.aborted()).map((line) => line.url.split('?')[0])).toEqual(['/api/cluster/3', '/api/pools/3', '/api/cluster/4', '/api/pools/4']);
  await settle(12_500);
  expect(lines.filter((line) => !line.aborted())).toEqual([]);
});

it('a stream that lingers is taken up again where it is', async () => {
  const live = new Live('/api/things');
  live.use()();
  offs.push(live.use());
  await settle(30_000);
  expect(lines.map((line) => line.aborted())).toEqual([false]);
});

it('what somebody looks at is never taken away', async () => {
  for (let i = 0; i < 6; i += 1) offs.push(new Live(`/api/things/${i}`).use());
  await settle();
  expect(lines.map((line) => line.aborted())).toEqual(Array<boolean>(6).fill(false));
});
