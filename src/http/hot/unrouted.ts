/** Finds the operation of a request without Fastify, if its target has the usual form. Fastify routes every other request. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Grant } from '../../domain/scope.ts';
import type { Tier } from '../../snapshot/document/answer.ts';
import {
  type AnswerOperation,
  answerRecorder,
  type Operation,
  type OperationDeps,
  operationAnswerer,
} from '../operation.ts';
import { type Parameters, queryNames, textParser, type Values } from '../protocol/parameters.ts';
import type { Problem } from '../protocol/problem.ts';
import { type AddressOf, requestIdOf } from '../protocol/request.ts';
import type { AnsweredRequest, RawReply } from '../send.ts';

/** An operation that needs no route. */
interface Unrouted {
  readonly operation: Operation;
  readonly answer: AnswerOperation<UnroutedReply>;
  refuse(reply: UnroutedReply, problem: Problem): void;
}

export interface FoundOperation {
  readonly form: Unrouted;
  readonly values: Values<Parameters>;
}

interface Form extends Unrouted {
  readonly pattern: RegExp;
  /** In the order of the pattern's groups. */
  readonly parameters: readonly { readonly name: string; parse(text: string): unknown }[];
}

/** Needs no percent-encoding, so that a text is its own meaning. */
const TEXT = '([A-Za-z0-9_-]+)';

/** Called before an answer of an ordinary route is written, and before a problem of an operation without one. */
export type BeforeAnswer = (request: IncomingMessage, response: ServerResponse, status: number) => void;

export function unroutedOperation(
  operation: Operation,
  deps: OperationDeps,
  beforeAnswer: BeforeAnswer,
): Unrouted {
  const answered = answerRecorder(deps, operation.path);
  const refuse = (reply: UnroutedReply, problem: Problem) => {
    const { raw, request } = reply;
    const { id, rateFields = [] } = request;
    const body = problem.body(id);
    const fields = [...rateFields, ...Object.entries(problem.headers).flat()];
    fields.push('x-request-id', id, 'content-length', String(body.length));
    beforeAnswer(request.raw, raw, problem.status);
    answered(request, problem.status);
    raw.writeHead(problem.status, fields).end(body);
  };
  return { operation, refuse, answer: operationAnswerer(operation, deps, refuse) };
}

/** Returns a function that finds the operation of a target. Each parameter is given once, the query in the order of declaration. */
export function operationFinder(
  operations: readonly Unrouted[],
): (target: string) => FoundOperation | undefined {
  const fixed = new Map<string, Form>();
  const templates: Form[] = [];
  for (const each of operations) {
    const { path, parameters } = each.operation;
    const inQuery = queryNames(path, parameters);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const query = inQuery.map((name) => `${name}=${TEXT}`).join('&');
    const end = query === '' ? '' : `\\?${query}`;
    const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, TEXT)}${end}$`);
    const named = [...inPath, ...inQuery].map((name) => ({
      name,
      parse: textParser(parameters[name] ?? z.never()),
    }));
    const form = { ...each, pattern, parameters: named };
    if (inPath.length === 0) fixed.set(path, form);
    else templates.push(form);
  }

  return (target) => {
    const end = target.indexOf('?');
    const path = end === -1 ? target : target.slice(0, end);
    const form = fixed.get(path);
    if (form) return foundIn(form, target);
    for (const template of templates) {
      const found = foundIn(template, target);
      if (found) return found;
    }
    return undefined;
  };
}

function foundIn(form: Form, target: string): FoundOperation | undefined {
  const { pattern, parameters } = form;
  const texts = pattern.exec(target);
  if (!texts) return undefined;
  const values: Record<string, unknown> = {};
  for (let i = 0; i < parameters.length; i++) {
    const { name, parse } = parameters[i] as (typeof parameters)[number];
    const value = parse(texts[i + 1] ?? '');
    if (value === undefined) return undefined;
    values[name] = value;
  }
  return { form, values };
}

/** A request that Fastify has not seen. The address is computed only for a line in the log. */
export class UnroutedRequest implements AnsweredRequest {
  readonly raw: IncomingMessage;
  readonly id: string;
  readonly startedAt: number;
  grant: Grant | undefined;
  rateFields: readonly string[] | undefined;
  tier: Tier | undefined;
  readonly #addressOf: AddressOf;

  constructor(raw: IncomingMessage, startedAt: number, addressOf: AddressOf) {
    this.raw = raw;
    this.id = requestIdOf(raw);
    this.startedAt = startedAt;
    this.#addressOf = addressOf;
  }

  get method(): string {
    return this.raw.method ?? '';
  }

  get ip(): string {
    return this.#addressOf(this.raw);
  }
}

export class UnroutedReply implements RawReply {
  readonly raw: ServerResponse;
  readonly request: UnroutedRequest;

  constructor(raw: ServerResponse, request: UnroutedRequest) {
    this.raw = raw;
    this.request = request;
  }

  hijack(): void {}
}
