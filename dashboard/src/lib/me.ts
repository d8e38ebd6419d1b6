/** Asks the server who we are. */
import { FLEET, get } from './api';
import { me, type Me } from './session';

export async function loadMe(): Promise<void> {
  me.value = await get<Me>(`${FLEET}/me`);
}
