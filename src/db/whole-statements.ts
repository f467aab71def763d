/**
 * Statements that go out in one piece.
 *
 * postgres.js sends a statement with parameters in two: it asks for the types of the parameters, and sends the values once
 * it has them. Where its process stops between the two, PostgreSQL sees a statement under way. The limit for idle
 * transactions does not count then, and rows that the transaction has locked stay locked until the limit for statements
 * ends it, for minutes. A statement that was sent as a whole has run when its sender falls silent. It also takes one round
 * trip instead of two.
 */
import { isQuery } from './pooled.ts';

type Call = (...given: unknown[]) => unknown;

/**
 * @param client of a transaction, or of one connection: on a pool, statements would wait behind one that is slow, where
 * now they wait for the first connection that is free
 */
export function wholeStatements<Client extends object>(client: Client): Client {
  return new Proxy(client, {
    apply: (target, self, parts) => whole(Reflect.apply(target as never, self, parts)),
    get(target, name) {
      const found: unknown = Reflect.get(target, name);
      if (name === 'unsafe') return (...given: unknown[]) => whole((found as Call)(...given));
      if (name === 'begin' || name === 'savepoint')
        return (...given: unknown[]) => (found as Call)(...given.map(stepsOf));
      return found;
    },
  });
}

/** The steps of a transaction get its client. */
function stepsOf(given: unknown): unknown {
  return typeof given === 'function' ? (client: object) => given(wholeStatements(client)) : given;
}

/** postgres.js sets this for each statement that it sends, and asks for the types first where it is true. */
function whole<T>(statement: T): T {
  if (isQuery(statement))
    Object.defineProperty(statement, 'describeFirst', { get: () => false, set: () => {} });
  return statement;
}
