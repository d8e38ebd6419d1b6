import { describe, expect, it } from 'vitest';
import { SseParser } from './sse';

const STREAM =
  'retry: 1000\n\nevent: ADDED\ndata: {"a":1}\n\n: still here\n\nevent: BOOKMARK\nid: 90\ndata: {"revision":90}\r\n\r\ndata:x\ndata: y\n\n';

const EVENTS = [
  { event: 'ADDED', data: '{"a":1}', id: null },
  { event: 'BOOKMARK', data: '{"revision":90}', id: '90' },
  { event: 'message', data: 'x\ny', id: null },
];

describe('SseParser', () => {
  it('reads events, ids, comments and both kinds of line ends', () => {
    expect(new SseParser().push(STREAM)).toEqual(EVENTS);
  });

  it('gives the same wherever the stream is cut', () => {
    for (let size = 1; size < STREAM.length; size += 1) {
      const parser = new SseParser();
      const out = [];
      for (let at = 0; at < STREAM.length; at += size) out.push(...parser.push(STREAM.slice(at, at + size)));
      expect(out).toEqual(EVENTS);
    }
  });

  it('keeps an event that is not complete', () => {
    const parser = new SseParser();
    expect(parser.push('data: half')).toEqual([]);
    expect(parser.push('\n\n')).toEqual([{ event: 'message', data: 'half', id: null }]);
  });
});
