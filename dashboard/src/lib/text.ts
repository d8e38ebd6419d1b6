/**
 * Text from the API, made harmless to show. Names, labels, messages and kernel lines come from machines and people we
 * do not know. They are only ever rendered as text nodes; this makes what is invisible in them visible, so that an
 * escape code cannot colour, a right-to-left mark cannot reorder, and ten kilobytes cannot fill the page.
 */

/** What is shown of a text before `show all`. A kernel line or a long reason fits; a hostile label does not. */
export const TEXT_LEN_MAX = 600;

/** More than this is not even put into the page by `show all`: it would only make the browser slow. */
export const TEXT_LEN_HARD_MAX = 200_000;

/** Real writing stacks a few marks on a letter; hundreds of them paint over the neighbours' lines. */
const MARKS_RUN_MAX = 6;

export interface Clean {
  text: string;
  /** How many characters are not shown. */
  cut: number;
}

/** Made visible, and at most `max` characters. Line breaks and tabs stay if `lines` says so. */
export function clean(raw: unknown, max: number = TEXT_LEN_MAX, lines = false): Clean {
  const all = typeof raw === 'string' ? raw : raw === null || raw === undefined ? '' : String(raw);
  let end = Math.min(all.length, max);
  // Never cut a pair of surrogates in two.
  if (end < all.length && isHigh(all.charCodeAt(end - 1))) end -= 1;
  return { text: visible(all.slice(0, end), lines), cut: all.length - end };
}

/** The same in one line with an ellipsis, for titles, canvas and attributes. */
export function plain(raw: unknown, max = 120): string {
  const { text, cut } = clean(raw, max);
  return cut > 0 ? `${text}…` : text;
}

/** Sentences name GPUs by UUID; the first part tells them apart, and the whole is in the evidence and the YAML. */
export function shortUuids(text: string | undefined): string {
  return (text ?? '').replace(/\bGPU-([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'GPU-$1…');
}

function visible(text: string, lines: boolean): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  let out = '';
  let marks = 0;
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (/\p{M}/u.test(char)) {
      marks += 1;
      if (marks <= MARKS_RUN_MAX) out += char;
      continue;
    }
    marks = 0;
    out += shown(char, code, lines);
  }
  return out;
}

function shown(char: string, code: number, lines: boolean): string {
  if (code === 0x0a || code === 0x09) return lines ? char : ' ';
  if (code === 0x0d) return lines ? '' : ' ';
  // The pictures of control characters: ␛ for escape.
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  return isHidden(code) ? `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9` : char;
}

/** What has no shape of its own and changes how others look: C1 controls, bidi, zero width, separators, tags. */
export function isHidden(code: number): boolean {
  return (
    (code >= 0x80 && code <= 0x9f) ||
    code === 0xad ||
    code === 0x61c ||
    code === 0x180e ||
    (code >= 0x200b && code <= 0x200f && code !== 0x200c && code !== 0x200d) ||
    (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2060 && code <= 0x206f) ||
    code === 0xfeff ||
    (code >= 0xfff0 && code <= 0xfffb) ||
    (code >= 0xe0000 && code <= 0xe0fff)
  );
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
