// Writes public/licenses.txt: what is inside the bundle, and on what terms. Run it after a change of dependencies.
import { readFileSync, writeFileSync } from 'node:fs';

const INSIDE = ['preact', '@preact/signals', '@preact/signals-core', 'uplot', '@fontsource-variable/inter', '@fontsource/jetbrains-mono'];

const modules = new URL('../node_modules/', import.meta.url);
const parts = INSIDE.map((name) => {
  const { version } = JSON.parse(readFileSync(new URL(`${name}/package.json`, modules)));
  return `${name} ${version}\n\n${readFileSync(new URL(`${name}/LICENSE`, modules), 'utf8').trim()}\n`;
});
writeFileSync(new URL('../public/licenses.txt', import.meta.url), parts.join(`\n${'-'.repeat(80)}\n\n`));
