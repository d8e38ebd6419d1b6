/** Who we are: the token of this tab, and what its role may do. */
import { computed, signal } from '@preact/signals';

const KEY = 'argosy.token';

/** What `GET /me` answers. */
export interface Me {
  subject: string;
  via: string;
  tenant: string;
  teams?: string[];
  role: 'Node' | 'Adapter' | 'Viewer' | 'Operator' | 'Admin';
  may: { write: boolean; force: boolean; administer: boolean };
  server: {
    version: string;
    /** False: nobody signs in, and everybody is an admin. */
    authentication: boolean;
    /** True for `argosy up`: a fleet to play with. */
    demo: boolean;
  };
}

function stored(): string {
  try {
    return sessionStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}

/** Kept for this tab only, and never in an address. */
export const token = signal(stored());

/** The server wants a token, or does not know ours any more: why, in its own words. */
export const signInWanted = signal<string | null>(null);

/** Null until the server has said it. */
export const me = signal<Me | null>(null);

/** Whether buttons that change something are shown. The server decides anyway; this spares people a refusal. */
export const mayAct = computed(() => me.value?.may.write === true);
export const mayForce = computed(() => me.value?.may.force === true);
export const mayAdminister = computed(() => me.value?.may.administer === true);
export const isDemo = computed(() => me.value?.server.demo === true);

export function setToken(value: string): void {
  token.value = value;
  me.value = null;
  signInWanted.value = null;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without storage the token lasts as long as the page.
  }
}

export function authorization(): Record<string, string> {
  return token.peek() ? { Authorization: `Bearer ${token.peek()}` } : {};
}
