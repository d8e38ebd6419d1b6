/** Everything that happens to nodes, live: filtered by typing and by kind, paused to read, exported. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { FLEET } from '../lib/api';
import { ENTRY, entryLook, EventFeed, filterEntries, toLines } from '../lib/events';
import { count, plural } from '../lib/format';
import { register } from '../lib/keys';
import { useLive } from '../lib/live';
import { href, query, segment, setQuery } from '../lib/router';
import { saveFile } from '../lib/save';
import type { LedgerEntry } from '../lib/types';
import { Age, Badge, Clock, Copy, Empty, ErrorBox, Fact, PageHead, Spinner, Text } from '../ui/basics';
import { Equivalent } from '../ui/command';
import { Dialog } from '../ui/dialog';
import { Glyph, Icon } from '../ui/glyph';
import { usePaletteActions } from '../ui/palette';
import { Table, type Column } from '../ui/table';
import { Yaml } from '../ui/yaml';

export default function Events() {
  const node = query.value.get('node') ?? '';
  const pool = query.value.get('pool') ?? '';
  const feed = useMemo(() => new EventFeed({ ...(node ? { node } : {}), ...(pool ? { pool } : {}) }), [node, pool]);
  useLive(feed);
  const typed = query.value.get('q') ?? '';
  const kinds = useMemo(() => new Set((query.value.get('kinds') ?? '').split(',').filter(Boolean)), [query.value.get('kinds')]);
  const held = useSignal<readonly LedgerEntry[] | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const all = held.value ?? feed.entries.value;
  const missed = held.value ? feed.entries.value.length - held.value.length : 0;
  const shown = useMemo(() => filterEntries(all, typed, kinds), [all, typed, kinds]);
  const counts = useMemo(() => {
    const found = new Map<string, number>();
    for (const entry of all) found.set(entry.type, (found.get(entry.type) ?? 0) + 1);
    return found;
  }, [all]);
  const open = Number(query.value.get('event') ?? '') || null;
  const opened = open === null ? undefined : feed.entries.value.find((entry) => entry.sequence === open);
  const toggle = () => (held.value = held.peek() ? null : feed.entries.peek());
  const save = () => saveFile(`argosy-events-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.jsonl`, toLines(shown), 'application/x-ndjson');
  useEffect(
    () =>
      register(
        { keys: '/', what: 'Filter events', act: () => input.current?.select() },
        { keys: 'p', what: 'Pause or resume the list', act: toggle },
      ),
    [feed],
  );
  usePaletteActions(
    [
      { kind: 'View', name: 'Pause the list of events', icon: 'pause', act: toggle },
      { kind: 'View', name: 'Export these events', icon: 'down', act: save },
    ],
    [feed],
  );
  const set = (kind: string) => {
    const next = new Set(kinds);
    if (!next.delete(kind)) next.add(kind);
    setQuery({ kinds: [...next].join(',') || null });
  };
  const problem = feed.error.value;
  return (
    <>
      <PageHead
        title="Events"
        kicker={
          node || pool ? (
            <>
              Of <Text value={node || pool} max={80} mono />. <a href={href('/events')}>All events</a>
            </>
          ) : (
            'Everything that happens to nodes, and what is done about it'
          )
        }
        actions={
          <>
            <button type="button" class="button" aria-pressed={held.value !== null} onClick={toggle}>
              <Icon name={held.value ? 'play' : 'pause'} />
              {held.value ? (missed > 0 ? `Resume (${count(missed)} new)` : 'Resume') : 'Pause the list'}
            </button>
            <button type="button" class="button" disabled={shown.length === 0} onClick={save}>
              <Icon name="down" /> Export
            </button>
          </>
        }
      />
      <div class="search">
        <div class="search-row" role="search">
          <Icon name="search" />
          <input
            ref={input}
            type="search"
            aria-label="Filter events"
            placeholder="Words in node, kind, rule or message; -word leaves out"
            value={typed}
            spellcheck={false}
            autocomplete="off"
            maxLength={400}
            onInput={(event) => setQuery({ q: event.currentTarget.value || null })}
            onKeyDown={(event) => {
              if (event.key === 'Escape') {
                setQuery({ q: null });
                event.currentTarget.blur();
              }
            }}
          />
          <span class="muted num" role="status">
            {shown.length === all.length ? count(all.length) : `${count(shown.length)} of ${count(all.length)}`}
          </span>
        </div>
      </div>
      <div class="kinds" role="group" aria-label="Kinds of events">
        {Object.entries(ENTRY)
          .filter(([kind]) => counts.has(kind) || kinds.has(kind))
          .map(([kind, one]) => (
            <button key={kind} type="button" class={`chip tone-${one.tone}`} aria-pressed={kinds.has(kind)} title={one.means} onClick={() => set(kind)}>
              <Glyph name={one.glyph} />
              {one.word} <span class="num muted">{count(counts.get(kind) ?? 0)}</span>
            </button>
          ))}
        {kinds.size > 0 && (
          <button type="button" class="link-button" onClick={() => setQuery({ kinds: null })}>
            All kinds
          </button>
        )}
      </div>
      {problem && problem.status !== 0 ? (
        <ErrorBox problem={problem} />
      ) : !feed.ready.value ? (
        <Spinner what="Reading events" />
      ) : (
        <Table
          label="Events"
          tall
          columns={COLUMNS}
          rows={shown}
          rowKey={(entry) => String(entry.sequence)}
          empty={
            all.length === 0 ? (
              <Empty title="Nothing has happened yet">
                Nodes report here when their agents find something. To see it, break a simulated GPU:
                <Equivalent cli="argosy demo inject xid-79" />
              </Empty>
            ) : (
              <Empty title="No event matches">
                {plural(all.length, 'event')} are here. Change the words, or choose other kinds.
              </Empty>
            )
          }
        />
      )}
      <div class="page-foot foot-row">
        {feed.older.value !== null && (
          <button type="button" class="button" onClick={() => void feed.loadOlder()}>
            Load older events
          </button>
        )}
        <Equivalent call={{ path: `${FLEET}/events`, query: { watch: true, node, pool } }} />
      </div>
      {opened && <Entry entry={opened} onClose={() => setQuery({ event: null })} />}
    </>
  );
}

const COLUMNS: Column<LedgerEntry>[] = [
  { key: 'at', head: 'Time', hide: 'phone', width: '11ch', cell: (entry) => <Clock at={entry.at} /> },
  { key: 'type', head: 'Kind', width: '128px', cell: (entry) => <Badge look={entryLook(entry)} quiet /> },
  { key: 'node', head: 'Node', hide: 'phone', width: '17%', cell: (entry) => <a href={href(`/nodes/${segment(entry.node_id)}`)}><Text value={entry.node_id} max={80} brief mono /></a> },
  {
    key: 'message',
    head: 'What',
    cell: (entry) => (
      <button type="button" class="row-button" onClick={() => setQuery({ event: String(entry.sequence) })}>
        <span class="only-phone row-first">
          <span class="mono">
            <Text value={entry.node_id} max={40} brief />
          </span>{' '}
          <Clock at={entry.at} />
        </span>
        <Text value={entry.message} max={260} brief />
      </button>
    ),
  },
  { key: 'by', head: 'By', hide: 'tablet', width: '14%', cell: (entry) => <span class="muted"><Text value={entry.verdict?.rule ?? entry.command?.by ?? entry.held_by ?? ''} max={60} brief /></span> },
];

function Entry({ entry, onClose }: { entry: LedgerEntry; onClose: () => void }) {
  const one = entryLook(entry);
  return (
    <Dialog title={`${one.word} of ${entry.node_id.slice(0, 80)}`} onClose={onClose} wide>
      <p class="lead">
        <Text value={entry.message} lines />
      </p>
      <dl class="facts facts-flat">
        <Fact name="When">
          <Clock at={entry.at} /> (<Age at={entry.at} />)
        </Fact>
        <Fact name="Node">
          <a href={href(`/nodes/${segment(entry.node_id)}`)}>
            <Text value={entry.node_id} max={80} mono />
          </a>
        </Fact>
        <Fact name="Number">
          <span class="num">{entry.sequence}</span> <Copy text={`${location.origin}${href('/events', { event: entry.sequence })}`} label="Copy a link to this event" />
        </Fact>
        {entry.verdict && (
          <Fact name="Rule">
            <a href={href(`/policies/${segment(entry.verdict.policy)}`)}>
              <Text value={`${entry.verdict.policy} / ${entry.verdict.rule}`} max={120} />
            </a>
          </Fact>
        )}
        {entry.held_by && (
          <Fact name="Held by">
            <a href={href('/safety')}>
              <Text value={entry.held_by} max={80} />
            </a>
          </Fact>
        )}
        {entry.command && (
          <Fact name="Command">
            <Text value={`${entry.command.type} by ${entry.command.by}: ${entry.command.outcome ?? entry.command.state}`} max={120} />
          </Fact>
        )}
      </dl>
      <Yaml value={entry} label="The whole entry" />
      <p class="foot-row">
        <a href={href('/events', { node: entry.node_id })}>All events of this node</a>
      </p>
    </Dialog>
  );
}
