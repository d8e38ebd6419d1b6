/** What is around every page: navigation, safety strip, banner, palette, shortcut sheet. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { connection, heardAt, now, onBack } from '../lib/connection';
import { duration } from '../lib/format';
import { register, startKeys } from '../lib/keys';
import { loadMe } from '../lib/me';
import { go, href, match, path } from '../lib/router';
import { isDemo, me, setToken, token } from '../lib/session';
import { setTheme, theme, type Theme } from '../lib/theme';
import { ROUTES, type Route } from '../routes';
import { Text } from './basics';
import { Glyph, Icon } from './glyph';
import { openPalette, Palette } from './palette';
import { openSheet, ShortcutSheet } from './shortcuts';
import { RecoveryBanner } from './recovery';
import { SafetyStrip } from './strip';
import { startTour, Tour } from './tour';

const menu = signal(false);
const GROUPS: [NonNullable<Route['nav']>['group'], string][] = [
  ['see', 'See'],
  ['want', 'Declare'],
  ['know', 'Know'],
];

let keysStarted = false;

export function Shell({ children }: { children: ComponentChildren }) {
  useEffect(() => {
    if (!keysStarted) startKeys();
    keysStarted = true;
    const known = () => {
      if (!me.peek()) void loadMe().catch(() => undefined);
    };
    known();
    const off = [
      onBack(known),
      register(
        { keys: 'mod+k', what: 'Go to anything, run anything', act: openPalette },
        { keys: '?', what: 'Show this sheet', act: openSheet },
        ...ROUTES.flatMap((route) =>
          route.nav
            ? [{ keys: `g ${route.nav.key}`, what: `Go to ${route.title}`, act: () => go(href(route.pattern)) }]
            : [],
        ),
      ),
    ];
    return () => off.forEach((one) => one());
  }, [token.value]);
  useEffect(() => {
    menu.value = false;
  }, [path.value]);

  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <aside class={`side${menu.value ? ' side-open' : ''}`}>
        <a class="brand" href={href('/')}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <path class="brand-main" d="M16 4v17H6C11 17.500 14.500 12 16 4Z" />
            <path class="brand-jib" d="M18 8.500c4.200 3.200 6.800 7.800 7.300 12.500H18Z" />
            <path class="brand-hull" d="M5 23h22c-1.600 2.800-4.200 4.200-7.400 4.200h-7.200C9.200 27.200 6.600 25.800 5 23Z" />
          </svg>
          Argosy
        </a>
        <nav aria-label="Pages">
          {GROUPS.map(([group, title]) => {
            const routes = ROUTES.filter((route) => route.nav?.group === group);
            if (routes.length === 0) return null;
            return (
              <div key={group} class="nav-group">
                <p aria-hidden="true">{title}</p>
                <ul>
                  {routes.map((route) => (
                    <li key={route.pattern}>
                      <a href={href(route.pattern)} {...(isHere(route) ? { 'aria-current': 'page' } : {})}>
                        {route.nav && <Icon name={route.nav.icon} />}
                        {route.title}
                      </a>
                    </li>
                  ))}
                </ul>
              </div>
            );
          })}
        </nav>
        <div class="side-foot">
          <Themes />
          <div class="side-links">
            <a href="/docs">API</a>
            <button type="button" class="link-button" onClick={openSheet}>
              Shortcuts
            </button>
            {isDemo.value && (
              <button type="button" class="link-button" onClick={startTour}>
                Tour
              </button>
            )}
          </div>
          <Who />
        </div>
      </aside>
      <div class="column">
        <header class="top">
          <button
            type="button"
            class="icon-button menu-button"
            aria-label={menu.value ? 'Close the menu' : 'Open the menu'}
            aria-expanded={menu.value}
            onClick={() => (menu.value = !menu.value)}
          >
            <Icon name={menu.value ? 'close' : 'menu'} />
          </button>
          <SafetyStrip />
          <div class="top-end">
            <ConnectionState />
            <button type="button" class="jump" onClick={openPalette} aria-label="Jump to Ctrl K: search anything">
              <Icon name="search" />
              <span class="jump-words">Jump to</span> <kbd>Ctrl K</kbd>
            </button>
          </div>
        </header>
        <Banner />
        <RecoveryBanner />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Palette />
      <ShortcutSheet />
      <Tour />
    </div>
  );
}

function isHere(route: Route): boolean {
  const at = path.value;
  return match(route.pattern, at) !== null || (route.pattern !== '/' && at.startsWith(`${route.pattern}/`));
}

function ConnectionState() {
  const looks = {
    live: { tone: 'ok', glyph: 'dot', word: 'Live' },
    connecting: { tone: 'idle', glyph: 'clock', word: 'Connecting' },
    lost: { tone: 'bad', glyph: 'cross', word: 'Lost' },
  } as const;
  const look = looks[connection.value];
  return (
    <span class={`connection tone-${look.tone}`} role="status" aria-label={`Connection: ${look.word}`}>
      <Glyph name={look.glyph} />
      <span class="connection-word">{look.word}</span>
    </span>
  );
}

function Banner() {
  if (connection.value !== 'lost') return null;
  return (
    <div class="banner" role="alert">
      <Glyph name="cross" />
      <span>
        <strong>The connection to the server is lost.</strong> What you see is {duration(now.value - heardAt.value)} old. It goes on by
        itself when the server is back.
      </span>
    </div>
  );
}

function Themes() {
  const kinds: [Theme, 'sun' | 'moon' | 'system', string][] = [
    ['light', 'sun', 'Light'],
    ['dark', 'moon', 'Dark'],
    ['system', 'system', 'As the system'],
  ];
  return (
    <div class="themes" role="group" aria-label="Theme">
      {kinds.map(([kind, icon, word]) => (
        <button key={kind} type="button" aria-pressed={theme.value === kind} aria-label={word} title={word} onClick={() => setTheme(kind)}>
          <Icon name={icon} />
        </button>
      ))}
    </div>
  );
}

function Who() {
  const who = me.value;
  if (!who) return null;
  return (
    <p class="who">
      <Icon name="user" />
      <span>
        <Text value={who.server.authentication ? who.subject : 'No sign-in'} max={40} brief />
        <small>{who.role}</small>
      </span>
      {token.value && (
        <button type="button" class="link-button" onClick={() => (setToken(''), location.reload())}>
          Sign out
        </button>
      )}
    </p>
  );
}
