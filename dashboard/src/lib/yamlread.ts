/**
 * YAML as people write it in specs and policies, read into JSON: maps, lists, texts in all five styles, flow
 * collections, comments. What a spec never needs (anchors, tags, several documents) is refused with its line, because
 * guessing would change what somebody asked for.
 */

/** Deeper than any spec; a bound for what recursion may take. */
const DEPTH_MAX = 48;

export class YamlError extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message);
    this.name = 'YamlError';
  }
}

interface Line {
  /** Counted from 1, as editors do. */
  at: number;
  indent: number;
  /** Without indent; comments are still in it, because they may be part of a text. */
  text: string;
  raw: string;
}

/** The value of a document; an empty one is null. */
export function fromYaml(text: string): unknown {
  return new Reader(text).document();
}

class Reader {
  private readonly lines: Line[];
  private place = 0;

  constructor(text: string) {
    // The break that ends the last line begins no new one.
    this.lines = text.replace(/\r?\n$/, '').split(/\r?\n/).map((raw, i) => {
      const indent = raw.length - raw.trimStart().length;
      return { at: i + 1, indent, text: raw.slice(indent), raw };
    });
  }

  document(): unknown {
    let first = this.peek();
    if (first && /^---(?:\s|$)/.test(first.raw)) {
      if (bare(first.text.slice(3)) !== '') throw new YamlError(first.at, 'Write the value in the line after `---`.');
      this.place += 1;
      first = this.peek();
    }
    if (!first) return null;
    const value = this.block(first.indent, 0);
    const rest = this.peek();
    if (rest) {
      if (/^(?:---|\.\.\.)/.test(rest.raw)) throw new YamlError(rest.at, 'One document only.');
      throw new YamlError(rest.at, 'This line does not belong to anything above it; check how far it is indented.');
    }
    return value;
  }

  /** The next line that says something. */
  private peek(): Line | undefined {
    for (;;) {
      const line = this.lines[this.place];
      if (!line) return undefined;
      if (line.text === '' || line.text.startsWith('#')) this.place += 1;
      else {
        if (/^ *\t/.test(line.raw)) throw new YamlError(line.at, 'Indent with spaces; YAML does not allow tabs.');
        return line;
      }
    }
  }

  private block(indent: number, depth: number): unknown {
    const line = this.peek();
    if (!line) return null;
    if (depth > DEPTH_MAX) throw new YamlError(line.at, 'Nested too deeply.');
    if (isItem(line.text)) return this.list(indent, depth);
    if (keyEnd(line.text, line.at) >= 0) return this.map(indent, depth);
    this.place += 1;
    return this.inline(line.text, line, indent - 1, depth);
  }

  private list(indent: number, depth: number): unknown[] {
    const items: unknown[] = [];
    for (;;) {
      const line = this.peek();
      if (!line || line.indent !== indent || !isItem(line.text)) {
        if (line && line.indent > indent) throw new YamlError(line.at, 'Indented further than the items of its list.');
        return items;
      }
      const rest = line.text.slice(1);
      const inner = rest.trimStart();
      if (bare(rest) === '') {
        this.place += 1;
        items.push(this.nested(indent, depth));
      } else if (isItem(inner) || keyEnd(inner, line.at) >= 0) {
        // `- name: x`: a map that begins beside the dash.
        const deeper = indent + 1 + (rest.length - inner.length);
        this.lines[this.place] = { ...line, indent: deeper, text: inner };
        items.push(this.block(deeper, depth + 1));
      } else {
        this.place += 1;
        items.push(this.inline(inner, line, indent, depth));
      }
    }
  }

  private map(indent: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    for (;;) {
      const line = this.peek();
      if (!line || line.indent < indent) return map;
      if (line.indent > indent) throw new YamlError(line.at, 'Indented further than its neighbours.');
      const end = isItem(line.text) ? -1 : keyEnd(line.text, line.at);
      if (end < 0) {
        if (isItem(line.text) || /^(?:---|\.\.\.)/.test(line.raw)) return map;
        throw new YamlError(line.at, 'A name and a colon are missing here, as in `name: value`.');
      }
      const key = keyText(line.text.slice(0, end), line.at);
      if (Object.hasOwn(map, key)) throw new YamlError(line.at, `\`${key.slice(0, 60)}\` is there twice.`);
      const rest = line.text.slice(end + 1);
      this.place += 1;
      const value = bare(rest) === '' ? this.nested(indent, depth, true) : this.inline(rest.trimStart(), line, indent, depth);
      // Not by assignment: `__proto__` is a name like any other.
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
    }
  }

  /** What stands under a key or a dash; nothing is null. Lists may stand as far out as their key. */
  private nested(indent: number, depth: number, key = false): unknown {
    const next = this.peek();
    if (!next) return null;
    if (next.indent > indent || (key && next.indent === indent && isItem(next.text))) return this.block(next.indent, depth + 1);
    return null;
  }

  /** A value that begins in this line: a text in some style, or a flow collection. The line is already taken. */
  private inline(text: string, line: Line, indent: number, depth: number): unknown {
    const first = text[0] ?? '';
    if (first === '|' || first === '>') return this.literal(text, line, indent);
    if (first === '&' || first === '*') throw new YamlError(line.at, 'Anchors and aliases are not understood here; write the value out.');
    if (first === '!') throw new YamlError(line.at, 'Tags are not understood here.');
    if (first === '%' || first === '@' || first === '`') throw new YamlError(line.at, `A text that begins with ${first} needs quotes.`);
    if (first === '{' || first === '[' || first === '"' || first === "'") {
      let all = text;
      for (;;) {
        const flow = new Flow(all, line.at);
        try {
          const value = flow.value(depth);
          flow.end();
          return value;
        } catch (thrown) {
          const next = this.lines[this.place];
          if (!(thrown instanceof Unfinished) || !next) throw thrown instanceof Unfinished ? new YamlError(line.at, thrown.message) : thrown;
          all += `\n${next.text}`;
          this.place += 1;
        }
      }
    }
    let plain = bare(text);
    for (let next = this.peek(); next && next.indent > indent && !/(?:^|\s)#/.test(text); next = this.peek()) {
      if (keyEnd(next.text, next.at) >= 0) throw new YamlError(next.at, 'A name under something that has a value already.');
      plain += ` ${bare(next.text)}`;
      this.place += 1;
    }
    if (/:(?:\s|$)/.test(plain)) throw new YamlError(line.at, 'A text with a colon needs quotes.');
    return scalar(plain);
  }

  private literal(text: string, line: Line, indent: number): string {
    const found = /^([|>])([-+]?)(\d?)([-+]?)\s*(?:#.*)?$/.exec(text);
    if (!found) throw new YamlError(line.at, `After ${text[0]} the text begins in the next line.`);
    const chomp = found[2] || found[4];
    const taken: Line[] = [];
    while (this.place < this.lines.length) {
      const next = this.lines[this.place] as Line;
      if (next.text !== '' && next.indent <= indent) break;
      taken.push(next);
      this.place += 1;
    }
    const full = taken.filter((one) => one.text !== '');
    const base = found[3] ? Math.max(indent, 0) + Number(found[3]) : Math.min(...full.map((one) => one.indent));
    const lines = taken.map((one) => (one.text === '' && one.raw.length <= base ? '' : one.raw.slice(base)));
    let end = lines.length;
    while (end > 0 && lines[end - 1] === '') end -= 1;
    const kept = lines.slice(0, end);
    const body = found[1] === '|' ? kept.join('\n') : folded(kept);
    if (chomp === '-') return body;
    const tail = chomp === '+' ? '\n'.repeat(lines.length - end + 1) : '\n';
    return end === 0 ? (chomp === '+' ? '\n'.repeat(lines.length) : '') : body + tail;
  }
}

/** `>`: lines become spaces, empty lines become breaks, further indented ones stay. */
function folded(lines: string[]): string {
  let out = lines[0] ?? '';
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i] ?? '';
    const before = lines[i - 1] ?? '';
    const stays = /^\s/.test(line) || /^\s/.test(before);
    if (line === '') out += '\n';
    else if (before === '') out += stays ? `\n${line}` : line;
    else out += (stays ? '\n' : ' ') + line;
  }
  return out;
}

function isItem(text: string): boolean {
  return text === '-' || text.startsWith('- ');
}

/** Without a comment at its end. */
function bare(text: string): string {
  if (text.trimStart().startsWith('#')) return '';
  const at = text.search(/\s#/);
  return (at < 0 ? text : text.slice(0, at)).trim();
}

/** Where the colon after a name is, or -1 where there is no name. */
function keyEnd(text: string, at: number): number {
  const first = text[0] ?? '';
  if (first === '"' || first === "'") {
    const end = quoteEnd(text, 0);
    if (end < 0) return -1;
    const colon = end + 1 + (text.slice(end + 1).length - text.slice(end + 1).trimStart().length);
    return text[colon] === ':' && /^(?:\s|$)/.test(text.slice(colon + 1)) ? colon : -1;
  }
  if (first === '{' || first === '[' || first === '|' || first === '>') return -1;
  if (first === '?' && /^\?(?:\s|$)/.test(text)) throw new YamlError(at, 'Names in the long form with ? are not understood here.');
  const found = /:(?=\s|$)/.exec(text);
  const comment = text.search(/\s#/);
  if (!found || (comment >= 0 && comment < found.index)) return -1;
  return found.index;
}

function keyText(text: string, at: number): string {
  const trimmed = text.trim();
  if (trimmed.startsWith('"') || trimmed.startsWith("'")) return String(new Flow(trimmed, at).value(0));
  if (trimmed === '') throw new YamlError(at, 'A name is missing before the colon.');
  if (/^[&*!]/.test(trimmed)) throw new YamlError(at, 'Anchors, aliases and tags are not understood here.');
  return trimmed;
}

function quoteEnd(text: string, from: number): number {
  const quote = text[from];
  for (let i = from + 1; i < text.length; i += 1) {
    if (quote === '"' && text[i] === '\\') i += 1;
    else if (text[i] === quote) {
      if (quote === "'" && text[i + 1] === "'") i += 1;
      else return i;
    }
  }
  return -1;
}

/** A plain word: null, a truth, a number, or text. As in YAML 1.2, `yes` and `on` are text. */
function scalar(text: string): unknown {
  if (text === '' || text === '~' || text === 'null' || text === 'Null' || text === 'NULL') return null;
  if (/^(?:true|True|TRUE)$/.test(text)) return true;
  if (/^(?:false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)) {
    const value = Number(text);
    if (Number.isFinite(value)) return value;
  }
  if (/^0x[\da-fA-F]+$/.test(text)) return Number(text);
  if (/^0o[0-7]+$/.test(text)) return Number(text);
  return text;
}

class Unfinished extends Error {}

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '0': '\0', a: '\x07', e: '\x1b', v: '\v', '"': '"', '\\': '\\', '/': '/', ' ': ' ', N: '\x85', _: '\xa0' };

/** `{a: 1, b: [x, "y"]}`, and texts in quotes. JSON is a part of it. */
class Flow {
  private i = 0;

  constructor(
    private readonly text: string,
    private readonly at: number,
  ) {}

  value(depth: number): unknown {
    if (depth > DEPTH_MAX) throw new YamlError(this.at, 'Nested too deeply.');
    this.space();
    const char = this.text[this.i];
    if (char === undefined) throw new Unfinished('Something is missing here.');
    if (char === '{') return this.map(depth);
    if (char === '[') return this.list(depth);
    if (char === '"' || char === "'") return this.quoted();
    if (/[&*!]/.test(char)) throw new YamlError(this.at, 'Anchors, aliases and tags are not understood here.');
    const found = /^(?:[^,[\]{}:#\n]|:(?=[^\s,[\]{}])|(?<=\S)#)+/.exec(this.text.slice(this.i));
    if (!found) throw new YamlError(this.at, `\`${char}\` is not expected here.`);
    this.i += found[0].length;
    return scalar(found[0].trim());
  }

  end(): void {
    const rest = this.text.slice(this.i);
    if (bare(rest) !== '') throw new YamlError(this.at, `\`${rest.trim().slice(0, 30)}\` stands after the end of the value.`);
  }

  private map(depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    this.i += 1;
    for (;;) {
      this.space();
      if (this.take('}')) return map;
      const key = String(this.value(depth + 1));
      this.space();
      let value: unknown = null;
      if (this.take(':')) {
        this.space();
        if (!/[,}]/.test(this.text[this.i] ?? '')) value = this.value(depth + 1);
      }
      if (Object.hasOwn(map, key)) throw new YamlError(this.at, `\`${key.slice(0, 60)}\` is there twice.`);
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
      this.space();
      if (!this.take(',') && this.text[this.i] !== '}') this.wrong('}');
    }
  }

  private list(depth: number): unknown[] {
    const list: unknown[] = [];
    this.i += 1;
    for (;;) {
      this.space();
      if (this.take(']')) return list;
      list.push(this.value(depth + 1));
      this.space();
      if (!this.take(',') && this.text[this.i] !== ']') this.wrong(']');
    }
  }

  private wrong(close: string): never {
    if (this.i >= this.text.length) throw new Unfinished(`The closing ${close} is missing.`);
    throw new YamlError(this.at, `A comma or ${close} is missing before \`${this.text.slice(this.i, this.i + 20)}\`.`);
  }

  private quoted(): string {
    const end = quoteEnd(this.text, this.i);
    if (end < 0) throw new Unfinished('The closing quote is missing.');
    const quote = this.text[this.i];
    // A break inside quotes is a space.
    const inside = this.text.slice(this.i + 1, end).replace(/[ \t]*\n[ \t]*/g, ' ');
    this.i = end + 1;
    if (quote === "'") return inside.replaceAll("''", "'");
    return inside.replace(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gs, (_, x?: string, u?: string, big?: string, char?: string) => {
      const code = x ?? u ?? big;
      if (code !== undefined) {
        const value = parseInt(code, 16);
        if (value > 0x10ffff) throw new YamlError(this.at, `\\U${code} is no character.`);
        return String.fromCodePoint(value);
      }
      const known = ESCAPES[char ?? ''];
      if (known === undefined) throw new YamlError(this.at, `\\${char ?? ''} is not known; a backslash is written \\\\.`);
      return known;
    });
  }

  private take(char: string): boolean {
    if (this.text[this.i] !== char) return false;
    this.i += 1;
    return true;
  }

  private space(): void {
    for (;;) {
      const found = /^(?:\s+|#[^\n]*)/.exec(this.text.slice(this.i));
      if (!found || (found[0].startsWith('#') && this.i > 0 && !/\s/.test(this.text[this.i - 1] ?? ''))) return;
      this.i += found[0].length;
    }
  }
}
