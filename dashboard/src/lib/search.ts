/** The search box: the API's language as it is, or plain words made into it. */

/** Text that uses an operator is the language; everything else is words to look for. */
const LANGUAGE = /[=<>]|\b(?:like|ilike|in|between|is)\b|^\s*not\b/i;

/** What is sent to the server for what was typed. Words must all be found, each in any of `fields`. */
export function toSearch(typed: string, fields: readonly string[]): string {
  const text = typed.trim();
  if (text === '' || LANGUAGE.test(text)) return text;
  const words = text.split(/\s+/).slice(0, 8);
  return words.map((word) => `(${fields.map((field) => `${field} ilike '%${escape(word)}%'`).join(' or ')})`).join(' and ');
}

/** Whether the words were translated, so that the box can say what it asks. */
export function isLanguage(typed: string): boolean {
  return LANGUAGE.test(typed);
}

function escape(word: string): string {
  return word.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
}

/** A text in the language's quotes. */
export function text(value: string): string {
  return `'${escape(value)}'`;
}
