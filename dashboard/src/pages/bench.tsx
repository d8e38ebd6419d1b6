/** The map with a made-up fleet, to measure it: no server is needed. `npm run bench` reads the result. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { FleetModel, type FleetMessage, type FleetRow } from '../lib/fleet';
import { count } from '../lib/format';
import { query } from '../lib/router';
import { Fact, PageHead } from '../ui/basics';
import './fleet/fleet.css';
import { FleetMap } from './fleet/map';

const TICK_MS = 100;

function number(name: string, otherwise: number): number {
  const value = Number(query.peek().get(name));
  return Number.isFinite(value) && value > 0 ? Math.min(value, 1_000_000) : otherwise;
}

/** Always the same fleet: a simple generator, seeded. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function made(nodes: number): FleetRow[] {
  const next = random(7);
  const list = (from: number, to: number) => Array.from({ length: 8 }, () => Math.round(from + next() * (to - from)));
  return Array.from({ length: nodes }, (_, i) => ({
    id: `node-${i}`,
    pool: `pool-${String(i % 20).padStart(2, '0')}`,
    zone: `zone-${i % 6}`,
    rack: `r${i % 240}`,
    cluster: `cluster-${i % 4}`,
    model: 'NVIDIA H100 80GB HBM3',
    status: i % 97 === 0 ? 'CORDONED' : 'ACTIVE',
    health: i % 97 === 0 ? 'UNHEALTHY' : 'HEALTHY',
    liveness: 'Fresh',
    revision: 1,
    gpus: 8,
    bad: i % 97 === 0 ? [i % 8] : [],
    memory_total: 85_899_345_920,
    at: Date.now(),
    t: list(40, 80),
    w: list(200, 700),
    u: i % 9 === 0 ? Array<number>(8).fill(0) : list(40, 100),
    m: list(10, 90),
    ce: Array<number>(8).fill(0),
    ue: Array<number>(8).fill(0),
  }));
}

export default function Bench() {
  const nodes = Math.ceil(number('gpus', 80_000) / 8);
  const perSecond = number('updates', 1_000);
  const colour = query.value.get('color') === 'temperature' ? 'temperature' : 'health';
  const model = useMemo(() => new FleetModel(), []);
  const result = useSignal({ frames: 0, seconds: 0, worst: 0, applied: 0, busy: 0 });

  useEffect(() => {
    // Through text, as from the stream, and not kept: rows that share their words and arrays with the model's would
    // seem to make the page grow when the model lets go of its own.
    model.begin();
    model.take(JSON.parse(JSON.stringify({ type: 'SNAPSHOT', at: Date.now(), revision: 1, nodes: made(nodes), more: false })) as FleetMessage);
    const next = random(11);
    let applied = 0;
    let busy = 0;
    const feed = setInterval(() => {
      const many = Math.max(1, Math.round((perSecond * TICK_MS) / 1000 / 8));
      const samples = Array.from({ length: many }, () => {
        const id = `node-${Math.floor(next() * nodes)}`;
        return { id, at: Date.now(), u: Array.from({ length: 8 }, () => Math.floor(next() * 100)), t: Array.from({ length: 8 }, () => 40 + Math.floor(next() * 45)) };
      });
      const row = model.nodes.get(`node-${Math.floor(next() * nodes)}`);
      const changed = row ? [{ ...row, status: next() < 0.5 ? ('ACTIVE' as const) : ('DRAINING' as const) }] : [];
      const text = JSON.stringify({ type: 'SAMPLES', at: Date.now(), revision: 2, nodes: changed, samples, gone: [] });
      const from = performance.now();
      model.take(JSON.parse(text) as FleetMessage);
      busy += performance.now() - from;
      applied += many * 8;
    }, TICK_MS);

    let frames = 0;
    let worst = 0;
    let started = 0;
    let before = 0;
    let frame = 0;
    const beat = (at: number) => {
      frame = requestAnimationFrame(beat);
      if (started === 0) {
        // The first second is for laying out.
        if (before === 0) before = at;
        if (at - before < 1000) return;
        started = at;
        applied = 0;
        busy = 0;
      } else {
        frames += 1;
        worst = Math.max(worst, at - before);
      }
      before = at;
      const seconds = (at - started) / 1000;
      if (frames % 30 === 0) result.value = { frames, seconds, worst, applied, busy };
    };
    frame = requestAnimationFrame(beat);
    return () => {
      clearInterval(feed);
      cancelAnimationFrame(frame);
    };
  }, []);

  const { frames, seconds, worst, applied, busy } = result.value;
  const per = (value: number) => (seconds > 0 ? value / seconds : 0);
  return (
    <>
      <PageHead title="Bench" kicker={`${count(nodes * 8)} GPUs, ${count(perSecond)} updates a second, nothing of it real`} />
      <dl class="panel facts" id="bench" data-fps={per(frames).toFixed(1)} data-seconds={seconds.toFixed(1)} data-worst={worst.toFixed(1)} data-updates={per(applied).toFixed(0)} data-busy={per(busy).toFixed(2)}>
        <Fact name="Frames per second">{per(frames).toFixed(1)}</Fact>
        <Fact name="Longest frame">{worst.toFixed(1)} ms</Fact>
        <Fact name="Updates per second">{count(Math.round(per(applied)))}</Fact>
        <Fact name="Taking them in, per second">{per(busy).toFixed(1)} ms</Fact>
      </dl>
      <div class="panel map-panel">
        <FleetMap model={model} by="pool" colour={colour} zoom={0} />
      </div>
    </>
  );
}
