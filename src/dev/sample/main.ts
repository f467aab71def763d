/**
 * The sample's upstreams as a process of their own. `SAMPLE_PORT` chooses the port; unset, a free one is taken. Its
 * URLs go to the process that started it, or, started by hand, as one line of JSON to standard output.
 */
import { answerParent, reportReady, whenParentIsGone } from '../../processes/ipc.ts';
import { startSampleUpstream } from './upstream.ts';

const port = process.env.SAMPLE_PORT || '0';
if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
  console.error(`SAMPLE_PORT must be a port from 0 to 65535; it is ${JSON.stringify(port)}`);
  process.exit(2);
}

const upstream = await startSampleUpstream({ port: Number(port) });
const { url, hetznerUrl, linodeUrl, clustersUrl } = upstream;
const urls = { url, hetznerUrl, linodeUrl, clustersUrl };
// It has none; who asks all processes would wait for it.
answerParent('metrics', async () => undefined);
if (process.send) reportReady(urls);
else console.log(JSON.stringify(urls));

let stopping = false;
function stop(): void {
  if (stopping) return;
  stopping = true;
  void upstream[Symbol.asyncDispose]().then(() => {
    if (process.connected) process.disconnect?.();
  });
}
process.on('SIGINT', stop).on('SIGTERM', stop);
whenParentIsGone(stop);
