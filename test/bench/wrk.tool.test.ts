import { describe, expect, it } from 'vitest';
import { cycleScript, readWrk } from '../../bench/read/wrk.ts';

const OUTPUT = `Running 1s test @ http://127.0.0.1:3000/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.10ms    1.01ms  33.00ms   91.22%
    Req/Sec    30.11k     2.21k   33.02k    72.73%
  32988 requests in 1.10s, 108.13MB read
Requests/sec:  29989.87
Transfer/sec:     98.30MB
`;

describe('the output of wrk', () => {
  it('has the answers a second and the total', () => {
    expect(readWrk(OUTPUT)).toEqual({ perSecond: 29989.87, answers: 32988 });
  });

  it.each([
    ['  Non-2xx or 3xx responses: 12', 'Non-2xx or 3xx responses: 12'],
    ['  Socket errors: connect 0, read 3, write 0, timeout 0', 'read 3'],
  ])('is rejected if it has %j', (line, message) => {
    expect(() => readWrk(OUTPUT.replace('Requests/sec', `${line}\nRequests/sec`))).toThrow(message);
  });

  it('is rejected without a result', () => {
    expect(() => readWrk('unable to connect to 127.0.0.1:1 Connection refused\n')).toThrow('no result');
  });
});

it('a script sends each request with its header fields, and then repeats', () => {
  const script = cycleScript([
    { path: '/a?x=1', headers: { authorization: 'Bearer "quoted"' } },
    { path: '/b', headers: {} },
  ]);
  expect(script).toContain(String.raw`{"/a?x=1",{["authorization"]="Bearer \"quoted\""}},`);
  expect(script).toContain('{"/b",{}},');
  expect(script).toContain('next % #ready + 1');
});
