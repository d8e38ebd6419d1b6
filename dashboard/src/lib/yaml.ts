/** JSON as YAML, the way `argosy -o yaml` prints it. Writing only; what people edit is read by the server. */

/** Words that YAML would read as something else than text. */
const NOT_TEXT = /^(?:true|false|yes|no|on|off|null|~|[-+]?(?:\d[\d_]*)?\.?\d+(?:[eE][-+]?\d+)?|0[xo][\da-fA-F]+|\.(?:inf|nan)|\d{4}-\d\d-\d\d.*)$/i;
const PLAIN = /^[A-Za-z0-9_/$.(][A-Za-z0-9_ /$.,()@%+=<>;'"!?*&|~^-]*$/;

export function toYaml(value: unknown): string {
  return `${node(value, 0).replace(/^\n/, '')}\n`;
}

function node(value: unknown, depth: number): string {
  const pad = '  '.repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return value.map((item) => `\n${pad}- ${inline(item, depth + 1)}`).join('');
  }
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).filter(([, member]) => member !== undefined);
    if (entries.length === 0) return '{}';
    return entries
      .map(([key, member]) => {
        // The items of a list stand under their name, not further in.
        const text = node(member, Array.isArray(member) ? depth : depth + 1);
        return `\n${pad}${scalar(key)}:${text.startsWith('\n') ? '' : ' '}${text}`;
      })
      .join('');
  }
  return typeof value === 'string' ? (value.includes('\n') ? block(value, depth) : scalar(value)) : String(value);
}

/** What follows `- `: its first line beside the dash. */
function inline(value: unknown, depth: number): string {
  const text = node(value, depth);
  return text.startsWith('\n') ? text.replace(/^\n +/, '') : text;
}

function block(text: string, depth: number): string {
  if (/[^\x20-\x7e\n\u00a0-\ud7ff\ue000-\ufffd]/.test(text) || /^[ \n]/.test(text)) return JSON.stringify(text);
  const pad = '  '.repeat(Math.max(depth, 1));
  const keep = text.endsWith('\n') ? (text.endsWith('\n\n') ? '+' : '') : '-';
  const lines = text.replace(/\n$/, '').split('\n');
  return `|${keep}${lines.map((line) => (line ? `\n${pad}${line}` : '\n')).join('')}`.replace(/^\|/, '|');
}

function scalar(text: string): string {
  const plain = PLAIN.test(text) && !NOT_TEXT.test(text) && !text.endsWith(' ') && !text.includes(' #');
  return plain ? text : JSON.stringify(text);
}
