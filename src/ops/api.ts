import type { FastifyError, FastifyInstance } from 'fastify';
import { BadRequest } from './parameters.ts';
import type { OpsPart } from './part.ts';

/** Adds the routes of all parts. An error is `{"error": "…"}`, with the `field` if one is wrong. */
export async function addApi(app: FastifyInstance, parts: readonly OpsPart[]): Promise<void> {
  const adding = parts.flatMap(({ addApi }) => addApi ?? []);
  if (adding.length === 0) return;
  const changed = async () => {
    await Promise.all(parts.map((part) => part.changed?.()));
  };
  await app.register(
    (api, _, done) => {
      api.setErrorHandler((error: FastifyError, _, reply) => {
        const status = error.statusCode ?? 500;
        const text = status < 500 ? error.message : 'an internal error occurred; see the log of the process';
        const field = error instanceof BadRequest ? { field: error.field } : {};
        return reply.code(status).send({ error: text, ...field });
      });
      api.setNotFoundHandler((request, reply) =>
        reply.code(404).send({ error: `there is no ${request.url.split('?')[0]}` }),
      );
      for (const add of adding) add(api, { changed });
      done();
    },
    { prefix: '/api' },
  );
}
