/** The policies in force: what they are for, and what they found. */
import { useMemo } from 'preact/hooks';
import { FLEET } from '../../lib/api';
import { count, plural } from '../../lib/format';
import { Polled, useLive } from '../../lib/live';
import { allPages } from '../../lib/pages';
import { hitsOf } from '../../lib/policy';
import { go, href, segment } from '../../lib/router';
import { mayAdminister } from '../../lib/session';
import type { FindingList, Policy, PolicyList } from '../../lib/types';
import { Age, Empty, ErrorBox, PageHead, Spinner, Text } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Icon } from '../../ui/glyph';
import { usePaletteActions } from '../../ui/palette';
import { Table, type Column } from '../../ui/table';

const policies = new Polled<PolicyList>(`${FLEET}/policies`, 15_000);
/** What every page of policies counts hits by. */
export const findings = new Polled<FindingList>(`${FLEET}/findings`, 5_000, {}, allPages);

export default function Policies() {
  useLive(policies);
  useLive(findings);
  const list = policies.data.value?.items;
  const found = findings.data.value?.items ?? [];
  const columns = useMemo<Column<Policy>[]>(() => {
    const nodes = (one: Policy) => new Set(found.filter((finding) => (finding.policy ?? 'default') === one.name).map((finding) => finding.node_id)).size;
    const worst = (one: Policy) => [...hitsOf(found, one.name)].sort((a, b) => b[1].nodes - a[1].nodes)[0];
    return [
      { key: 'name', head: 'Policy', width: '16%', cell: (one) => <Text value={one.name} max={63} brief />, value: (one) => one.name },
      { key: 'for', head: 'For', hide: 'phone', width: '20%', cell: (one) => (one.pools && one.pools.length > 0 ? <Text value={one.pools.join(', ')} max={120} brief /> : <span class="muted">every pool without its own</span>), value: (one) => one.pools?.join(', ') },
      { key: 'rules', head: 'Rules', end: true, width: '8ch', cell: (one) => count(one.rules.length), value: (one) => one.rules.length },
      { key: 'nodes', head: 'Nodes hit', end: true, width: '11ch', cell: (one) => <span class="live">{count(nodes(one))}</span>, value: nodes },
      { key: 'top', head: 'Most by', hide: 'tablet', width: '18%', cell: (one) => <Text value={worst(one)?.[0]} max={60} brief />, value: (one) => worst(one)?.[0] },
      { key: 'version', head: 'Version', end: true, hide: 'phone', width: '10ch', cell: (one) => (one.version === 0 ? 'built-in' : count(one.version)), value: (one) => one.version },
      { key: 'changed', head: 'Changed', end: true, hide: 'phone', width: '11ch', cell: (one) => (one.version === 0 ? '–' : <Age at={one.updated_at} word={false} />), value: (one) => one.updated_at },
      { key: 'what', head: 'What for', hide: 'tablet', cell: (one) => <span class="muted"><Text value={one.description} max={200} brief /></span> },
    ];
  }, [found]);
  usePaletteActions(mayAdminister.value ? [{ kind: 'Action', name: 'Write a policy…', icon: 'plus', act: () => go(href('/create/policy')), changes: true }] : [], [mayAdminister.value]);
  return (
    <>
      <PageHead
        title="Policies"
        kicker={list ? `${plural(list.length, 'policy', 'policies')} in force: which events make a node sick` : 'Which events make a node sick'}
        actions={
          mayAdminister.value && (
            <a class="button button-primary" href={href('/create/policy')}>
              <Icon name="plus" /> Write a policy
            </a>
          )
        }
      />
      {policies.error.value ? (
        <ErrorBox problem={policies.error.value} onRetry={() => void policies.refresh()} />
      ) : !list ? (
        <Spinner what="Reading policies" />
      ) : (
        <Table label="Policies" columns={columns} rows={list} rowKey={(one) => one.name} link={(one) => href(`/policies/${segment(one.name)}`)} order="name" empty={<Empty title="No policy is in force">The built-in one comes back when the server starts.</Empty>} />
      )}
      <div class="page-foot">
        <Equivalent cli="argosy policy list" call={{ path: `${FLEET}/policies` }} />
      </div>
    </>
  );
}
