import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

/**
 * Refuses a body of GET and HEAD by the header: to parse small chunks takes far more time than to send them. The connection ends
 * with the answer, also after chunks of other methods.
 */
export function withoutBodies(
  ordinary: RequestListener,
  refuse: (request: IncomingMessage, response: ServerResponse) => void,
): RequestListener {
  return (request, response) => {
    const { headers, method } = request;
    const length = headers['content-length'];
    const isChunked = headers['transfer-encoding'] !== undefined;
    const isRead = method === 'GET' || method === 'HEAD';
    if (!isChunked && (length === undefined || length === '0')) {
      // With a type, Fastify would wait for the end of the body, which `optimizeEmptyRequests` leaves out.
      if (!isRead && length === undefined) headers['content-type'] = undefined;
      ordinary(request, response);
      return;
    }
    if (isRead || isChunked) response.shouldKeepAlive = false;
    if (isRead) refuse(request, response);
    else ordinary(request, response);
  };
}
