import { describe, expect, it } from 'vitest';
import * as fleet from './fleet';
import { FleetModel, gpuState, type FleetRow } from './fleet';

const row = (id: string, more: Partial<FleetRow> = {}): FleetRow => ({
  id,
  status: 'ACTIVE',
  health: 'HEALTHY',
  liveness: 'Fresh',
  revision: 1,
  gpus: 2,
  u: [90, 90],
  ...more,
});

describe('gpuState', () => {
  it.each<[Partial<FleetRow>, number]>([
    [{}, fleet.BUSY],
    [{ u: [1, 90] }, fleet.IDLE],
    [{ u: [null, 90] }, fleet.BUSY],
    [{ health: 'UNKNOWN' }, fleet.UNKNOWN],
    [{ health: 'DEGRADED' }, fleet.DEGRADED],
    [{ health: 'DEGRADED', warn: [1] }, fleet.BUSY],
    [{ health: 'DEGRADED', warn: [0] }, fleet.DEGRADED],
    [{ status: 'UNHEALTHY', health: 'UNHEALTHY' }, fleet.UNHEALTHY],
    [{ status: 'UNHEALTHY', health: 'UNHEALTHY', bad: [1] }, fleet.DEGRADED],
    [{ status: 'CORDONED', health: 'UNHEALTHY', bad: [1] }, fleet.CORDONED],
    [{ status: 'CORDONED', health: 'UNHEALTHY', bad: [0] }, fleet.UNHEALTHY],
    [{ status: 'DRAINING' }, fleet.DRAINING],
    [{ status: 'UNHEALTHY', liveness: 'Unreachable' }, fleet.UNREACHABLE],
  ])('of %j', (more, state) => {
    expect(gpuState(row('a', more), 0)).toBe(state);
  });
});

describe('FleetModel', () => {
  const started = () => {
    const model = new FleetModel();
    model.begin();
    model.take({ type: 'SNAPSHOT', at: 0, revision: 1, nodes: [row('a')], more: true });
    model.take({ type: 'SNAPSHOT', at: 0, revision: 1, nodes: [row('b', { u: [0, 0] })], more: false });
    return model;
  };
  const samples = { type: 'SAMPLES' as const, at: 1, revision: 2, nodes: [], samples: [], gone: [] };
  const counted = (model: FleetModel) => [model.gpus, model.counts[fleet.BUSY], model.counts[fleet.IDLE]];

  it('shows a snapshot when its last part has come', () => {
    const model = new FleetModel();
    model.begin();
    model.take({ type: 'SNAPSHOT', at: 0, revision: 1, nodes: [row('a')], more: true });
    expect(model.gpus).toBe(0);
    model.take({ type: 'SNAPSHOT', at: 0, revision: 1, nodes: [], more: false });
    expect(model.gpus).toBe(2);
  });

  it('keeps counts right through samples, changes and removals', () => {
    const model = started();
    expect(counted(model)).toEqual([4, 2, 2]);
    model.take({ ...samples, samples: [{ id: 'b', u: [50, 0], t: [60, 61] }] });
    expect(counted(model)).toEqual([4, 3, 1]);
    model.take({ ...samples, nodes: [row('a', { status: 'CORDONED', health: 'UNHEALTHY', bad: [1] })] });
    expect([...model.counts]).toEqual([1, 1, 0, 1, 0, 1, 0, 0]);
    model.take({ ...samples, nodes: [row('a', { status: 'TERMINATED' })], gone: ['b'] });
    expect(model.gpus).toBe(0);
  });

  it('tells the map which cells changed, and when to lay out anew', () => {
    const model = started();
    const told: unknown[] = [];
    model.listen({ changed: (first, count) => told.push([first, count]), moved: () => told.push('moved') });
    model.take({ ...samples, samples: [{ id: 'b', u: [50, 50] }] });
    model.take({ ...samples, nodes: [row('c')] });
    expect(told).toEqual([[2, 2], 'moved']);
  });

  it('forgets what it had when the stream begins anew', () => {
    const model = started();
    model.begin();
    model.take({ type: 'SNAPSHOT', at: 9, revision: 9, nodes: [row('z')], more: false });
    expect([...model.nodes.keys()]).toEqual(['z']);
    expect(model.gpus).toBe(2);
  });

  it('a node that is cured loses its marks', () => {
    const model = started();
    model.take({ ...samples, nodes: [row('a', { status: 'UNHEALTHY', health: 'UNHEALTHY', bad: [0] })] });
    expect(model.counts[fleet.UNHEALTHY]).toBe(1);
    model.take({ ...samples, nodes: [row('a')] });
    expect(model.counts[fleet.UNHEALTHY]).toBe(0);
  });

  it('a node that changes stays the one the map was laid out with', () => {
    const model = started();
    const laidOut = model.nodes.get('a');
    model.take({ ...samples, nodes: [row('a', { status: 'DRAINING' })] });
    expect(model.nodes.get('a')).toBe(laidOut);
    expect(laidOut?.status).toBe('DRAINING');
  });

  it('nodes that come take the places of those that went', () => {
    const model = started();
    const room = model.state.length;
    for (let i = 0; i < 2 * room; i += 1) model.take({ ...samples, nodes: [row(`new-${i}`)], gone: [i === 0 ? 'b' : `new-${i - 1}`] });
    expect(model.state.length).toBe(room);
    expect(counted(model)).toEqual([4, 4, 0]);
    expect([...model.nodes.values()].map((node) => node.first).sort()).toEqual([0, 2]);
  });

  it('does not mind samples of nodes it does not know', () => {
    const model = started();
    model.take({ ...samples, samples: [{ id: 'nobody', u: [1] }], gone: ['nobody'] });
    expect(counted(model)).toEqual([4, 2, 2]);
  });
});
