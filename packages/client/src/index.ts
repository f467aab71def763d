/** `@fleetbook/client`: a client for the API that needs web standards only. See docs/client.md. */

export type * from './api.ts';
export type { ChangesOptions } from './changes.ts';
export { FleetbookClient } from './client.ts';
export type * from './documents.ts';
export type { Download, DownloadOptions } from './download.ts';
export { CursorGone, FleetbookProblem, FleetbookUnreachable } from './problem.ts';
export type { Answer, CallOptions, ClientOptions } from './requests.ts';
export { type AnswerStore, MemoryStore, type StoredAnswer } from './store.ts';
