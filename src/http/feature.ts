import type { Operation } from './operation.ts';
import type { HttpLimits } from './protocol/limits.ts';
import type { StreamOperation } from './stream-operation.ts';

/** What a feature adds to the API. */
export interface ApiPart {
  readonly operations?: readonly Operation[];
  readonly streams?: readonly StreamOperation[];
}

export type ApiFeature = (limits: HttpLimits) => ApiPart;
