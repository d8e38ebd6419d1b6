import { describe, expect, it } from 'vitest';
import { clean, plain, shortUuids, TEXT_LEN_MAX } from './text';

describe('clean', () => {
  it.each([
    ['plain words', 'plain words'],
    ['<script>alert(1)</script>', '<script>alert(1)</script>'],
    ['\x1b[31mred\x1b[0m', '␛[31mred␛[0m'],
    ['a\x00b\x07', 'a␀b␇'],
    ['user\u202etxt.exe', 'user⟨U+202E⟩txt.exe'],
    ['\u2066x\u2069', '⟨U+2066⟩x⟨U+2069⟩'],
    ['zero\u200bwidth\ufeff', 'zero⟨U+200B⟩width⟨U+FEFF⟩'],
    ['c1\u009b31m', 'c1⟨U+009B⟩31m'],
    ['line\nbreak\r\n', 'line break  '],
    ['tag\u{e0041}', 'tag⟨U+E0041⟩'],
    ['lone\ud800', 'lone\ufffd'],
    ['Zürich 東京 عربى', 'Zürich 東京 عربى'],
    ['\x7f', '␡'],
  ])('shows %j harmlessly', (raw, text) => {
    expect(clean(raw)).toEqual({ text, cut: 0 });
  });

  it('keeps line breaks where lines are wanted', () => {
    expect(clean('a\r\n\tb', 100, true).text).toBe('a\n\tb');
  });

  it('cuts ten kilobytes and says how much is missing', () => {
    const { text, cut } = clean('x'.repeat(10_240));
    expect(text.length).toBe(TEXT_LEN_MAX);
    expect(cut).toBe(10_240 - TEXT_LEN_MAX);
  });

  it('never cuts a character in two', () => {
    expect(clean('ab😀', 3)).toEqual({ text: 'ab', cut: 2 });
  });

  it('stops marks that pile up on one letter', () => {
    expect(clean(`a${'\u0301'.repeat(400)}b`).text.length).toBeLessThan(12);
  });

  it.each([[undefined, ''], [null, ''], [42, '42'], [true, 'true']])('takes %j', (raw, text) => {
    expect(clean(raw).text).toBe(text);
  });
});

it('plain is one short line', () => {
  expect(plain('a\nb'.repeat(100), 10)).toBe('a ba ba ba…');
});

it('UUIDs of GPUs are shortened in sentences', () => {
  expect(shortUuids('Xid 79 (GPU-475b0ede-b185-4ed8-8818-8da514800042) on GPU 6')).toBe('Xid 79 (GPU-475b0ede…) on GPU 6');
  expect(shortUuids(undefined)).toBe('');
});
