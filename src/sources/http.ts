import type { z } from 'zod';
export interface JsonAnswer<T> { readonly data: T; readonly headers: Headers }
export interface SourceHttp { json<T>(path: string, schema: z.ZodType<T>): Promise<JsonAnswer<T>>; }
