/** Server-sent events over `fetch`, which unlike EventSource can carry a token. */

export interface SseEvent {
  event: string;
  data: string;
  id: string | null;
}

/** A line longer than this is no event of ours; without a limit a broken server could fill our memory. */
const BUFFER_LEN_MAX = 16 * 1024 * 1024;

/** Cuts a stream of text into events, wherever the pieces were cut. */
export class SseParser {
  private buffer = '';
  private event = '';
  private data: string[] = [];
  private id: string | null = null;

  push(text: string): SseEvent[] {
    this.buffer += text;
    if (this.buffer.length > BUFFER_LEN_MAX) throw new Error('an event of the stream is too long');
    const out: SseEvent[] = [];
    let from = 0;
    for (;;) {
      const end = this.buffer.indexOf('\n', from);
      if (end < 0) break;
      const line = this.buffer.slice(from, this.buffer.charCodeAt(end - 1) === 13 && end > from ? end - 1 : end);
      from = end + 1;
      const done = this.line(line);
      if (done) out.push(done);
    }
    this.buffer = this.buffer.slice(from);
    return out;
  }

  private line(line: string): SseEvent | null {
    if (line === '') {
      if (this.data.length === 0) {
        this.event = '';
        return null;
      }
      const done = { event: this.event || 'message', data: this.data.join('\n'), id: this.id };
      this.event = '';
      this.data = [];
      this.id = null;
      return done;
    }
    const colon = line.indexOf(':');
    // A comment: the keep-alive.
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1);
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    else if (field === 'id') this.id = value;
    return null;
  }
}
