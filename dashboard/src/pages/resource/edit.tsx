/** The YAML of a cluster or a node pool: to read, and to change. */
import { useSignal } from '@preact/signals';
import { BASE_API, get, patch } from '../../lib/api';
import { leaves, mergePatch } from '../../lib/change';
import { shell } from '../../lib/command';
import { mayAct } from '../../lib/session';
import type { Resource, ResourcePatch } from '../../lib/types';
import { segment } from '../../lib/router';
import { Section } from '../../ui/basics';
import { Equivalent } from '../../ui/command';
import { Editor, type Version } from '../../ui/editor';
import { toast } from '../../ui/toast';
import { Yaml } from '../../ui/yaml';

/** What people may change, with the name above it so that they see whose it is. */
export interface Editable {
  kind: string;
  name: string;
  labels: Record<string, string>;
  spec: Record<string, unknown>;
}

/** Which resource, in the words of the API and of the command line. */
export interface Place {
  path: string;
  noun: 'cluster' | 'nodepool';
  /** `NAME`, or `NAME -c CLUSTER`. */
  words: string[];
}

export function clusterPlace(cluster: string): Place {
  return { path: `${BASE_API}/clusters/${segment(cluster)}`, noun: 'cluster', words: [cluster] };
}

export function poolPlace(cluster: string, pool: string): Place {
  return { path: `${BASE_API}/clusters/${segment(cluster)}/nodepools/${segment(pool)}`, noun: 'nodepool', words: [pool, '-c', cluster] };
}

export function editable(resource: Resource): Editable {
  return { kind: resource.kind, name: resource.name, labels: resource.labels ?? {}, spec: resource.spec };
}

function version(resource: Resource): Version<Editable> {
  return { document: editable(resource), revision: resource.revision };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

export function shapeOf(like: { kind: string; name: string }): (value: unknown) => Editable {
  return (value) => {
    if (!isMap(value)) throw new Error('Write `labels` and `spec`, as they were.');
    const other = Object.keys(value).find((key) => !['kind', 'name', 'labels', 'spec'].includes(key));
    if (other !== undefined) throw new Error(`\`${other.slice(0, 60)}\` cannot be changed here; \`labels\` and \`spec\` can.`);
    if ((value['name'] ?? like.name) !== like.name || (value['kind'] ?? like.kind) !== like.kind) throw new Error('Name and kind stay as they are. Another name is another resource: create it.');
    const { labels = {}, spec = {} } = value;
    if (!isMap(spec)) throw new Error('`spec` is a map.');
    if (!isMap(labels)) throw new Error('`labels` is a map of texts.');
    for (const [key, one] of Object.entries(labels)) if (typeof one !== 'string') throw new Error(`The label \`${key.slice(0, 60)}\` needs quotes: labels are texts.`);
    return { kind: like.kind, name: like.name, labels: labels as Record<string, string>, spec };
  };
}

export function patchOf(from: Editable, to: Editable): ResourcePatch {
  const spec = mergePatch(from.spec, to.spec);
  const labels = mergePatch(from.labels, to.labels) as Record<string, string | null>;
  return { ...(Object.keys(spec).length > 0 ? { spec } : {}), ...(Object.keys(labels).length > 0 ? { labels } : {}) };
}

/** The same change as a command. */
export function patchCommand(place: Place, change: ResourcePatch): string {
  const words: string[] = [];
  for (const { path, value } of leaves(change.spec ?? {})) {
    if (value === null) words.push('--unset', path);
    else words.push('--set', `${path}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  }
  for (const [key, value] of Object.entries(change.labels ?? {})) words.push('-l', value === null ? `${key}-` : `${key}=${value}`);
  return shell('argosy', place.noun, 'patch', ...place.words, ...words);
}

export function sendPatch(place: Place, change: ResourcePatch, revision: number | null, dry: boolean): Promise<Resource> {
  return patch<Resource>(place.path, change, {
    query: dry ? { dry_run: true } : {},
    headers: revision === null ? {} : { 'If-Match': `"${revision}"` },
  });
}

export function YamlTab({ resource, place, onApplied }: { resource: Resource; place: Place; onApplied: (now: Resource) => void }) {
  const editing = useSignal(false);
  if (!editing.value)
    return (
      <Section
        title="As YAML"
        aside={
          mayAct.value && (
            <button type="button" class="button button-small" onClick={() => (editing.value = true)}>
              Edit…
            </button>
          )
        }
      >
        <Yaml value={resource} label={`${resource.kind} ${resource.name}`} />
        <div class="page-foot">
          <Equivalent cli={shell('argosy', place.noun, 'get', ...place.words, '-o', 'yaml')} call={{ path: place.path }} />
        </div>
      </Section>
    );
  return (
    <Section title={`Change ${resource.name}`}>
      <Editor<Editable>
        label={`YAML of ${resource.name}`}
        start={version(resource)}
        shape={shapeOf(resource)}
        check={async (from, to) => editable(await sendPatch(place, patchOf(from.document, to), null, true))}
        apply={async (from, to) => {
          const done = await sendPatch(place, patchOf(from.document, to), from.revision, false);
          toast(`Applied: generation ${done.generation}.`);
          editing.value = false;
          onApplied(done);
        }}
        reload={async () => version(await get<Resource>(place.path))}
        equivalent={(from, to) => {
          const change = patchOf(from, to);
          return { cli: patchCommand(place, change), call: { method: 'PATCH', path: place.path, body: change } };
        }}
        onCancel={() => (editing.value = false)}
      />
    </Section>
  );
}
