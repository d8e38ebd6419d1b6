/** A real server for a test: its own directory, its own port, ended with the test. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const ROOT = resolve(import.meta.dirname, '../..');
export const BIN = resolve(ROOT, process.env['ARGOSY_BIN'] ?? 'target/debug/argosy');

/** From the start of the process to its first good answer, on a machine that is busy with other things. */
const READY_MS = 60_000;
const LOOK_MS = 50;

export type Role = 'viewer' | 'operator' | 'admin';

export class Server {
  url = '';
  #process: ChildProcess | undefined;
  readonly #dir = mkdtempSync(join(tmpdir(), 'argosy-browser-'));
  #args: string[] = [];
  #output = '';

  /** `argosy up`: three clusters and as many simulated nodes, and no fault but those of the test. */
  static async demo(nodes: number): Promise<Server> {
    const server = new Server();
    const port = await freePort();
    await server.#start(['up', '--no-faults', '--port', String(port), '--data-dir', join(server.#dir, 'data'), '--nodes', String(nodes)], port);
    return server;
  }

  /** `argosy server` with an empty store, a cloud that makes everything at once, and this configuration beside. */
  static async plain(config = ''): Promise<Server> {
    const server = new Server();
    const file = join(server.#dir, 'config.yaml');
    writeFileSync(file, `simulated_cloud: { enabled: true, instant: true }\n${config}`);
    const port = await freePort();
    await server.#start(['server', '--config', file, '--listen', `127.0.0.1:${port}`, '--data-dir', join(server.#dir, 'data')], port);
    return server;
  }

  /** The same with authentication, and a token for each of these people. */
  static async withTokens<Name extends string>(people: Record<Name, { role: Role; teams?: string[] }>): Promise<{ server: Server; tokens: Record<Name, string> }> {
    const dir = mkdtempSync(join(tmpdir(), 'argosy-tokens-'));
    const file = join(dir, 'tokens.yaml');
    const tokens: Partial<Record<Name, string>> = {};
    let entries = '';
    for (const [name, { role, teams = [] }] of Object.entries(people) as [Name, { role: Role; teams?: string[] }][]) {
      // The entry goes to standard output, the token to standard error.
      const said = join(dir, `${name}.token`);
      entries += execFileSync('bash', ['-c', '"$@" 2>"$0"', said, BIN, 'token', 'new', '--name', name, '--role', role, ...teams.flatMap((team) => ['--team', team])], { encoding: 'utf8' });
      const token = /argosy_[\w-]+|[\w-]{32,}/.exec(readFileSync(said, 'utf8'))?.[0];
      if (!token) throw new Error(`no token in: ${readFileSync(said, 'utf8')}`);
      tokens[name] = token;
    }
    writeFileSync(file, entries);
    const server = await Server.plain(`auth: { tokens_file: ${file} }\n`);
    return { server, tokens: tokens as Record<Name, string> };
  }

  /** Kill it as a power cut does. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Again, with the same data on the same port. */
  async restart(): Promise<void> {
    await this.#start(this.#args, Number(new URL(this.url).port));
  }

  /** Put its store aside, as it is now. */
  backUp(): void {
    this.cli('backup', '--data-dir', join(this.#dir, 'data'), '--to', join(this.#dir, 'backup.db'));
  }

  /** Go back to it: what was bought meanwhile the cloud knows, and the store does not. */
  async goBack(): Promise<void> {
    await this.#end('SIGTERM');
    this.cli('restore', '--from', join(this.#dir, 'backup.db'), '--data-dir', join(this.#dir, 'data'), '--force', '--yes');
    await this.restart();
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Ask its API; what is no success throws. */
  async call<T = unknown>(method: string, path: string, body?: unknown, token?: string): Promise<T> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...(token ? { Authorization: `Bearer ${token}` } : {}) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** Run the command line against it. */
  cli(...args: string[]): string {
    return execFileSync(BIN, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ARGOSY_SERVER: this.url, NO_COLOR: '1' } });
  }

  async #start(args: string[], port: number): Promise<void> {
    if (!existsSync(BIN)) throw new Error(`${BIN} is not there: build it, or name it in ARGOSY_BIN`);
    this.#args = args;
    this.#output = '';
    // In the directory of its own: nothing of a checkout is found by accident.
    const child = spawn(BIN, args, { cwd: this.#dir, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } });
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (this.#output = (this.#output + String(data)).slice(-8_000)));
    this.url = `http://127.0.0.1:${port}`;
    const until = Date.now() + READY_MS;
    for (;;) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the server ended by itself:\n${this.#output}`);
      const answer = await fetch(`${this.url}/readyz`).catch(() => null);
      if (answer?.ok) return;
      if (Date.now() > until) throw new Error(`the server is not ready after ${READY_MS / 1000} s:\n${this.#output}`);
      await pause(LOOK_MS);
    }
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    const patience = setTimeout(() => child.kill('SIGKILL'), 15_000);
    await ended;
    clearTimeout(patience);
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done));
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  if (!address || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
