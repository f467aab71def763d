/** Runs the sample's upstreams on SAMPLE_PORT. Reports the URLs to the parent, or prints them as JSON. */
import { answerParent, onParentExit, reportReady } from '../../processes/ipc.ts';
import { startSampleUpstream } from './upstream.ts';

const port = process.env.SAMPLE_PORT || '0';
if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
  console.error(`SAMPLE_PORT must be a port from 0 to 65535; it is ${JSON.stringify(port)}`);
  process.exit(2);
}

const upstream = await startSampleUpstream({ port: Number(port) });
const { url, hetznerUrl, linodeUrl, clustersUrl, lifecyclesUrl } = upstream;
const urls = { url, hetznerUrl, linodeUrl, clustersUrl, lifecyclesUrl };
// It has no metrics, but the parent waits for the answers of all processes.
answerParent(async () => undefined);
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
onParentExit(stop);
