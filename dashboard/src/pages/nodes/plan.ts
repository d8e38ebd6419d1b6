/** What an action on a node will touch, told before it runs. Pure. */
import { money, plural } from '../../lib/format';
import type { BudgetImpact, Instance, Node } from '../../lib/types';

export type Action = 'CORDON' | 'UNCORDON' | 'DRAIN' | 'RUN_DIAGNOSTIC' | 'TERMINATE';

/** How a plan's line is marked: as in a diff. */
export type Mark = '+' | '-' | '~' | '=';

export interface Line {
  mark: Mark;
  text: string;
}

export interface Around {
  instance: Instance | null;
  /** What the server says of the disruption budgets; empty until it has. */
  budgets: readonly BudgetImpact[];
}

const TO: Partial<Record<Action, string>> = { CORDON: 'Cordoned', UNCORDON: 'Active', DRAIN: 'Draining', TERMINATE: 'Terminated' };

export function plan(node: Node, action: Action, around: Around, options: { drainFor: string; force: boolean }): Line[] {
  const lines: Line[] = [];
  const to = TO[action];
  const out = action === 'CORDON' || action === 'DRAIN' || action === 'TERMINATE';
  const busy = node.gpus.filter((gpu) => (gpu.utilization ?? 0) >= 5).length;
  if (to) lines.push({ mark: node.duty.state === to ? '=' : '~', text: node.duty.state === to ? `${node.id} is ${to} already` : `${node.id}: ${node.duty.state} → ${to}` });

  if (action === 'CORDON') lines.push({ mark: '=', text: 'What runs on it goes on; nothing new is started' });
  if (action === 'DRAIN') {
    lines.push({ mark: '-', text: busy > 0 ? `Work on ${plural(busy, 'GPU')} is asked to end within ${options.drainFor}` : 'No GPU is at work now' });
    lines.push({ mark: options.force ? '-' : '=', text: options.force ? 'What still runs at the deadline is ended' : 'What still runs at the deadline is left running' });
  }
  if (action === 'RUN_DIAGNOSTIC')
    lines.push({ mark: '~', text: busy > 0 ? `The test shares ${plural(busy, 'GPU')} with work that runs now` : 'No GPU is at work now; the test disturbs nobody' });
  if (action === 'UNCORDON') lines.push({ mark: '+', text: `${plural(node.gpus.length, 'GPU')} back in service; findings that events made end` });
  if (out && node.duty.state === 'Active') lines.push({ mark: '-', text: `${plural(node.gpus.length, 'GPU')} out of service${busy > 0 ? `, ${busy} of them at work now` : ''}` });

  if (action === 'TERMINATE') {
    lines.push({ mark: '-', text: busy > 0 ? `Work on ${plural(busy, 'GPU')} is lost: terminating does not drain` : 'No GPU is at work now' });
    const { instance } = around;
    if (instance)
      lines.push({
        mark: '-',
        text: `Machine ${instance.machine_id ?? instance.id} at ${instance.provider} is returned${instance.cost_per_hour ? `: ${money(instance.cost_per_hour)} an hour less` : ''}`,
      });
    lines.push(instance ? { mark: '+', text: `${instance.pool} buys another if it then has too few` } : { mark: '=', text: 'Argosy did not buy this machine, and does not return it' });
  }
  for (const budget of around.budgets) {
    lines.push({ mark: budget.exceeded ? '-' : '=', text: `Disruption budget, ${budget.message}` });
    if (budget.exceeded && budget.frees) lines.push({ mark: '=', text: budget.frees });
  }
  return lines;
}
