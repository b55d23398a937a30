// Checks the type declarations from a TypeScript app with module resolution `nodenext`. Compiled, never run.
import { Countersign, type AuthenticationFailure, type Snapshot } from 'countersign-web';
import * as braze from 'countersign-web/braze';

const client = new Countersign({ endpoint: 'https://e.example', writeKey: 'k', tokenProvider: async ({ userId }) => userId });
const snapshot: Snapshot = await client.snapshot();
export const queued: number = snapshot.queued;
export const stored: 'disk' | 'memory' | 'dropped' = (await client.track('a', { b: 1 })).stored;
client.onAuthenticationFailure((failure: AuthenticationFailure) => console.log(failure.code));
braze.initialize('k', { baseUrl: 'e.example' });

// @ts-expect-error: the name of an event is a string
client.track(1);
// @ts-expect-error: a count is a number
export const text: string = snapshot.queued;
// @ts-expect-error: the write key is required
export const other = new Countersign({ endpoint: 'https://e.example' });
