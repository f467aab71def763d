/**
 * Records each outgoing connection and name lookup of a process: `--import` this file. The file named by `CONNECTIONS_FILE`
 * gets a line of JSON for each. Processes that inherit `NODE_OPTIONS` are recorded too.
 */
import dgram from 'node:dgram';
import dns from 'node:dns';
import { appendFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

const file = process.env.CONNECTIONS_FILE ?? '';
const program = process.argv.slice(1).join(' ');

function record(to: string): void {
  appendFileSync(file, `${JSON.stringify({ program, to })}\n`);
}

/** Runs `before` with the arguments of each call of `owner[name]`. */
function observe(owner: object, name: string, before: (args: readonly unknown[]) => void): void {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== 'function') throw new Error(`there is no function ${name}`);
  Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
    before(args);
    return Reflect.apply(original, this, args);
  });
}

interface Target {
  readonly path?: string;
  readonly host?: string;
  readonly port?: number | string;
}

/** Returns the target of `connect(options)`, `connect(path)` or `connect(port, host)`. */
function targetOf(args: readonly unknown[]): string {
  // net.connect() passes its own arguments as one array.
  const [first, second] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
  if (typeof first === 'object' && first !== null) {
    const { path, host, port } = first as Target;
    return path ?? `${host ?? 'localhost'}:${port}`;
  }
  if (typeof first === 'string' && !/^\d+$/.test(first)) return first;
  return `${typeof second === 'string' ? second : 'localhost'}:${first}`;
}

observe(net.Socket.prototype, 'connect', (args) => record(targetOf(args)));
observe(dgram.Socket.prototype, 'connect', (args) => record(`udp ${args[1]}:${args[0]}`));
observe(dgram.Socket.prototype, 'send', (args) => record(`udp ${args.slice(1).join(' ')}`));
for (const name of ['lookup', 'resolve', 'resolve4', 'resolve6', 'resolveSrv', 'resolveTxt', 'resolveAny']) {
  observe(dns, name, ([host]) => record(`name ${host}`));
  observe(dns.promises, name, ([host]) => record(`name ${host}`));
}
syncBuiltinESMExports();
