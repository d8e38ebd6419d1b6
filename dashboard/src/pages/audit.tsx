/** Who did what, when and why; and whether the log is whole. */
import { useSignal } from '@preact/signals';
import { useMemo, useRef, useEffect } from 'preact/hooks';
import { asProblem, FLEET, get, type Problem } from '../lib/api';
import { count, plural } from '../lib/format';
import { register } from '../lib/keys';
import { Polled, useLive } from '../lib/live';
import { go, href, query, segment, setQuery } from '../lib/router';
import { saveFile } from '../lib/save';
import { mayAdminister, me } from '../lib/session';
import type { AuditEntry, AuditList, AuditVerification } from '../lib/types';
import { Age, Clock, Copy, Empty, ErrorBox, Fact, PageHead, Spinner, Text } from '../ui/basics';
import { Equivalent } from '../ui/command';
import { Dialog } from '../ui/dialog';
import { Glyph, Icon } from '../ui/glyph';
import { Table, type Column } from '../ui/table';
import { Segments } from '../ui/tabs';
import { Yaml } from '../ui/yaml';

const PAGE = 500;

/** What agents do in the course of things; without authentication they have the same name as people. */
const OF_AGENTS = new Set(['register', 'report-health', 'deliver', 'acknowledge', 'report', 'heartbeat', 'answer', 'order', 'observe']);

/** Entries with all the words in who, what, whose and why. */
export function filterAudit(entries: readonly AuditEntry[], typed: string, people: boolean): AuditEntry[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter((entry) => {
    if (people && (entry.via === 'system' || /^(?:adapter|node|agent):/.test(entry.actor) || OF_AGENTS.has(entry.action))) return false;
    const text = [entry.actor, entry.via, entry.action, entry.kind, entry.name, entry.id, entry.reason, entry.request_id].filter(Boolean).join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export default function Audit() {
  // Not asked for before it is known that it may be: a refusal helps nobody.
  if (!me.value) return <Spinner what="Reading the audit log" />;
  return mayAdminister.value ? <Log /> : <NotYours role={me.value.role} />;
}

function NotYours({ role }: { role: string }) {
  return (
    <>
      <PageHead title="Audit" kicker="Who did what, when and why" />
      <Empty title="The audit log is for administrators">Your role is {role}. Ask somebody with the role Admin, or sign in with another token.</Empty>
    </>
  );
}

function Log() {
  const newest = useLive(useMemo(() => new Polled<AuditList>(`${FLEET}/audit`, 5_000, { limit: PAGE }), []));
  const past = useSignal<readonly AuditEntry[]>([]);
  const next = useSignal<number | null | undefined>(undefined);
  const problem = useSignal<Problem | null>(null);
  const verified = useSignal<AuditVerification | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const typed = query.value.get('q') ?? '';
  const people = query.value.get('by') !== 'all';
  const all = useMemo(() => {
    const found = new Map([...(newest.data.value?.items ?? []), ...past.value].map((entry) => [entry.sequence, entry]));
    return [...found.values()].sort((a, b) => b.sequence - a.sequence);
  }, [newest.data.value, past.value]);
  const shown = useMemo(() => filterAudit(all, typed, people), [all, typed, people]);
  const older = next.value === undefined ? (newest.data.value?.next ?? null) : next.value;
  const opened = all.find((entry) => String(entry.sequence) === query.value.get('entry'));
  useEffect(() => register({ keys: '/', what: 'Search the audit log', act: () => input.current?.select() }), []);
  const loadOlder = async () => {
    if (older === null) return;
    try {
      const page = await get<AuditList>(`${FLEET}/audit`, { limit: PAGE, before: older });
      past.value = [...past.value, ...(newest.data.peek()?.items ?? []), ...page.items];
      next.value = page.next ?? null;
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  const verify = async () => {
    try {
      verified.value = await get<AuditVerification>(`${FLEET}/audit/verify`);
    } catch (thrown) {
      problem.value = asProblem(thrown);
    }
  };
  const broken = verified.value?.broken;
  return (
    <>
      <PageHead
        title="Audit"
        kicker="Who did what, when and why"
        actions={
          <>
            <button type="button" class="button" onClick={() => void verify()}>
              <Icon name="audit" /> Verify the chain
            </button>
            <button type="button" class="button" disabled={shown.length === 0} onClick={() => saveFile('argosy-audit.jsonl', [...shown].reverse().map((entry) => `${JSON.stringify(entry)}\n`).join(''), 'application/x-ndjson')}>
              <Icon name="down" /> Export
            </button>
          </>
        }
      />
      {verified.value && (
        <p class={`note tone-${broken ? 'bad' : 'ok'}`} role="status">
          <Glyph name={broken ? 'cross' : 'check'} />
          <span>
            {broken ? (
              <>
                <strong>The chain is broken at {broken.sequence}:</strong> <Text value={broken.problem} /> Compare with a backup: somebody changed the log outside of Argosy.
              </>
            ) : (
              `The chain is whole: ${plural(verified.value.entries, 'record')}, each with the hash of the one before.`
            )}
          </span>
        </p>
      )}
      {problem.value && <ErrorBox problem={problem.value} />}
      <div class="search">
        <div class="search-row" role="search">
          <Icon name="search" />
          <input
            ref={input}
            type="search"
            aria-label="Search the audit log"
            placeholder="Who, what, whose, why"
            value={typed}
            spellcheck={false}
            autocomplete="off"
            maxLength={400}
            onInput={(event) => setQuery({ q: event.currentTarget.value || null })}
            onKeyDown={(event) => {
              if (event.key === 'Escape') setQuery({ q: null });
            }}
          />
          <Segments
            label="Whose deeds"
            value={people ? 'people' : 'all'}
            options={[
              ['people', 'People'],
              ['all', 'Everybody'],
            ]}
            onChange={(value) => setQuery({ by: value === 'all' ? 'all' : null })}
          />
        </div>
      </div>
      {newest.error.value ? (
        <ErrorBox problem={newest.error.value} onRetry={() => void newest.refresh()} />
      ) : !newest.data.value ? (
        <Spinner what="Reading the audit log" />
      ) : (
        <Table
          label="Audit log"
          columns={COLUMNS}
          rows={shown}
          rowKey={(entry) => String(entry.sequence)}
          link={(entry) => href('/audit', { q: typed, by: people ? null : 'all', entry: entry.sequence })}
          order="-at"
          empty={
            <Empty title={typed ? 'No record matches' : 'People have done nothing yet'}>
              {all.length === 0
                ? 'Whatever is done is written here: by whom, when and why.'
                : `${plural(all.length, 'record')} are here${people ? ', most of them of adapters, agents and Argosy itself: choose Everybody to see them' : ''}.`}
            </Empty>
          }
        />
      )}
      <div class="page-foot foot-row">
        {older !== null && (
          <button type="button" class="button" onClick={() => void loadOlder()}>
            Load older records
          </button>
        )}
        <Equivalent cli="argosy audit list" call={{ path: `${FLEET}/audit`, query: { limit: PAGE } }} />
      </div>
      {opened && (
        <Dialog title={`${opened.action} ${opened.kind} ${opened.name}`.slice(0, 120)} onClose={() => go(href('/audit', { q: typed, by: people ? null : 'all' }), true)} wide>
          <dl class="facts facts-flat">
            <Fact name="Who">
              <Text value={opened.actor} max={120} />
            </Fact>
            <Fact name="By way of">
              <Text value={opened.via} max={60} />
            </Fact>
            <Fact name="When">
              <Clock at={opened.at} /> (<Age at={opened.at} />)
            </Fact>
            <Fact name="Request">
              {opened.request_id ? (
                <>
                  <Text value={opened.request_id} mono max={80} />
                  <Copy text={opened.request_id} label="Copy the request id" />
                </>
              ) : (
                '–'
              )}
            </Fact>
          </dl>
          {opened.reason && (
            <p class="lead">
              “<Text value={opened.reason} />”
            </p>
          )}
          <Yaml value={opened} label="The whole record" />
        </Dialog>
      )}
    </>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { key: 'at', head: 'When', width: '92px', cell: (entry) => <Age at={entry.at} word={false} />, value: (entry) => entry.sequence },
  { key: 'actor', head: 'Who', hide: 'phone', width: '22%', cell: (entry) => <Text value={entry.actor} max={80} brief />, value: (entry) => entry.actor },
  { key: 'action', head: 'Did', width: '13%', cell: (entry) => <strong><Text value={entry.action} max={40} brief /></strong>, value: (entry) => entry.action },
  { key: 'what', head: 'To', width: '22%', cell: (entry) => <Subject entry={entry} />, value: (entry) => `${entry.kind} ${entry.name}` },
  { key: 'reason', head: 'Why', hide: 'phone', cell: (entry) => <span class="muted"><Text value={entry.reason} max={200} brief /></span>, value: (entry) => entry.reason },
  { key: 'via', head: 'Via', hide: 'tablet', width: '11ch', cell: (entry) => <Text value={entry.via} max={30} brief />, value: (entry) => entry.via },
  { key: 'sequence', head: 'No.', end: true, hide: 'tablet', width: '9ch', cell: (entry) => count(entry.sequence), value: (entry) => entry.sequence },
];

function Subject({ entry }: { entry: AuditEntry }) {
  const kind = entry.kind.toLowerCase();
  const to = kind === 'cluster' ? `/clusters/${segment(entry.name)}` : kind === 'node' ? `/nodes/${segment(entry.id)}` : kind === 'instance' ? `/instances/${segment(entry.id)}` : kind === 'policy' ? `/policies/${segment(entry.name)}` : null;
  const words = (
    <>
      <span class="muted">
        <Text value={entry.kind} max={30} brief />{' '}
      </span>
      <Text value={entry.name || entry.id} max={80} brief />
    </>
  );
  return to ? <a href={href(to)}>{words}</a> : words;
}
