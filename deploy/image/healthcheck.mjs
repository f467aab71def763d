/**
 * HEALTHCHECK of the image, for the command of the container: `serve` and `up` must be ready to answer, and `work` must answer on
 * OPS_PORT. Other commands have no port and are healthy while they run.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';

const { PORT = '3000', OPS_PORT = '3001' } = process.env;
const CHECKS = { serve: [PORT, '/readyz'], up: [PORT, '/readyz'], work: [OPS_PORT, '/healthz'] };

// With an init process, process 1 has the same arguments after its own.
const words = readFileSync('/proc/1/cmdline', 'utf8').split('\0');
const command = words[words.findIndex((word) => word.endsWith('/cli.js')) + 1] ?? '';
const check = CHECKS[command];
if (check) {
  const [port, path] = check;
  get({ host: '127.0.0.1', port, path, timeout: 4_000 }, (answer) => {
    if (answer.statusCode !== 200) console.error(`port ${port} answers ${path} with ${answer.statusCode}`);
    process.exit(answer.statusCode === 200 ? 0 : 1);
  })
    .on('timeout', () => {
      console.error(`port ${port} does not answer ${path}`);
      process.exit(1);
    })
    .on('error', (error) => {
      console.error(`port ${port} does not answer ${path}: ${error.message}`);
      process.exit(1);
    });
}
