import { lazily } from '../../domain/lazily.ts';
import { encodeBody } from '../../snapshot/document/body.ts';
import type { DescribedOperation } from '../operation.ts';
import { allowedCodings } from '../protocol/negotiate.ts';
import { programBytes, programName } from '../reference/files.ts';
import { llmsText } from '../reference/llms.ts';
import { REFERENCE_POLICY, referencePage } from '../reference/page.ts';
import { sendPublic } from '../send.ts';
import type { AddPage } from './health.ts';

export interface ReferenceDeps {
  readonly operations: readonly DescribedOperation[];
  readonly basePath: string;
  readonly page: AddPage;
}

/** The file's name contains a hash of its content. */
const FOR_EVER = 'public, max-age=31536000, immutable';

export function addReference({ operations, basePath, page }: ReferenceDeps): void {
  const program = programName();
  const html = lazily(() => encodeBody(Buffer.from(referencePage(program))));
  page('/docs', async (request, reply) => {
    reply
      .header('content-security-policy', REFERENCE_POLICY)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer');
    return sendPublic(request, reply, await html(), 'text/html; charset=utf-8');
  });

  // People type these paths. The page has relative links, so it cannot be served here.
  page('/docs/', async (_, reply) => reply.redirect(`${basePath}/docs`, 308));
  page('/', async (_, reply) => reply.redirect(`${basePath}/docs`, 302));

  const text = lazily(() => encodeBody(Buffer.from(llmsText(operations, basePath))));
  page('/llms.txt', async (request, reply) =>
    sendPublic(request, reply, await text(), 'text/plain; charset=utf-8'),
  );

  if (program === undefined) return;
  page(`/docs/${program}`, async (request, reply) => {
    const [coding = 'identity'] = allowedCodings(request.headers['accept-encoding']?.toString());
    const bytes = await programBytes(program, coding);
    reply
      .type('text/javascript; charset=utf-8')
      .header('cache-control', FOR_EVER)
      .header('vary', 'Accept-Encoding')
      .header('x-content-type-options', 'nosniff');
    if (coding !== 'identity') reply.header('content-encoding', coding);
    return reply.header('content-length', bytes.length).send(request.method === 'HEAD' ? undefined : bytes);
  });
}
