// Writes src/lib/types.ts from the OpenAPI document: `npm run types`. The result is committed, and `npm test` says when
// it is out of date.
import { readFileSync, writeFileSync } from 'node:fs';

const here = new URL('.', import.meta.url);
const schemas = JSON.parse(readFileSync(new URL('../../openapi/argosy.json', here))).components.schemas;
const SIMPLE = { integer: 'number', number: 'number', string: 'string', boolean: 'boolean', null: 'null' };

function type(schema, indent = '  ') {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.enum) return schema.enum.map((value) => `'${value}'`).join(' | ');
  const either = schema.oneOf ?? schema.anyOf;
  if (either) {
    // One of these, or not that: it may be missing as a whole.
    const real = either.filter((one) => !one.not);
    const text = real.map((one) => type(one, indent)).join(' | ');
    return real.length < either.length ? `Partial<${text}>` : text;
  }
  if (schema.allOf)
    return schema.allOf.map((one) => type(one, indent)).map((text) => (text.includes(' | ') ? `(${text})` : text)).join(' & ');
  if (Array.isArray(schema.type)) return schema.type.map((one) => SIMPLE[one] ?? 'unknown').join(' | ');
  if (schema.type === 'array') {
    const item = type(schema.items ?? {}, indent);
    return item.includes(' ') ? `(${item})[]` : `${item}[]`;
  }
  if (schema.properties) {
    const required = new Set(schema.required ?? []);
    const members = Object.entries(schema.properties).map(
      ([name, member]) =>
        `${indent}${/^\w+$/.test(name) ? name : `'${name}'`}${required.has(name) ? '' : '?'}: ${type(member, `${indent}  `)};\n`,
    );
    return `{\n${members.join('')}${indent.slice(2)}}`;
  }
  if (schema.type === 'object') {
    const value = schema.additionalProperties;
    return `Record<string, ${value && typeof value === 'object' && Object.keys(value).length > 0 ? type(value, indent) : 'unknown'}>`;
  }
  return SIMPLE[schema.type] ?? 'unknown';
}

export function generated() {
  const parts = Object.entries(schemas).map(([name, schema]) => {
    // A view is the whole thing, or what `fields` left of it; the dashboard asks for what it reads.
    const text = type(schema).replace(/ \| \{\n {2}id: string;\n\}$/, '');
    return schema.properties && !schema.allOf && !schema.oneOf && !schema.anyOf ? `export interface ${name} ${text}` : `export type ${name} = ${text};`;
  });
  return `// Generated from openapi/argosy.json by \`npm run types\`. Do not edit.\n\n${parts.join('\n\n')}\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  writeFileSync(new URL('../src/lib/types.ts', here), generated());
