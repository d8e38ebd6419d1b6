/** Whether the screen is as narrow as a phone's, in step with `.hide-phone` of ui.css. */
import { signal } from '@preact/signals';

// Where there is no window, in unit tests, there is no phone either.
const media = globalThis.matchMedia?.('(max-width: 820px)');

export const narrow = signal(media?.matches ?? false);

media?.addEventListener('change', () => (narrow.value = media.matches));
