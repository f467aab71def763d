import { describe, expect, it, vi } from 'vitest';
import { readableLine } from '../../src/app/logger.ts';

const PLAIN = { colours: false, stacks: false };
const ENTRY = { time: '2026-11-21T16:13:30.222Z', pid: 29452, name: 'serve' };

const line = (fields: object, style = PLAIN) => readableLine(JSON.stringify({ ...ENTRY, ...fields }), style);

describe('a log entry on a terminal', () => {
  it('is one line: the local time of day, process, level, message and fields', () => {
    vi.stubEnv('TZ', 'Asia/Kolkata');
    const printed = line({
      level: 40,
      why: 'the connection for the stream was closed',
      tries: 3,
      msg: 'the link is down',
    });
    vi.unstubAllEnvs();
    expect(printed).toBe(
      '21:43:30 serve[29452] warn  the link is down (why="the connection for the stream was closed" tries=3)\n',
    );
  });

  it('states an error once, without its stack', () => {
    const err = {
      type: 'Error',
      message: 'connect ECONNREFUSED',
      stack: 'Error: …\n    at x.ts:1',
      code: 'E1',
    };
    expect(line({ level: 50, err, msg: 'not published' })).toMatch(
      /error not published: connect ECONNREFUSED \(code=E1\)\n$/,
    );
    expect(line({ level: 50, err, msg: err.message })).toMatch(/error connect ECONNREFUSED \(code=E1\)\n$/);
    expect(line({ level: 50, err: 'no error', msg: 'it failed' })).toMatch(/error it failed: no error\n$/);
  });

  it('states the place of an error if it is a defect, or on request', () => {
    const stack = 'TypeError: x is not a function\n    at one (a.ts:1:2)\n    at two (b.ts:3:4)';
    const err = { type: 'TypeError', message: 'x is not a function', stack };
    const places = /: x is not a function\n {2}at one \(a\.ts:1:2\)\n {2}at two \(b\.ts:3:4\)\n$/;
    expect(line({ level: 50, err, msg: 'a request failed' })).toMatch(places);
    const { type: _, ...nameless } = err;
    expect(line({ level: 50, err: { ...nameless, name: 'TypeError' }, msg: 'it failed' })).toMatch(places);
    const other = { level: 50, err: { ...err, type: 'Error' }, msg: 'a request failed' };
    expect(line(other)).not.toMatch(places);
    expect(line(other, { ...PLAIN, stacks: true })).toMatch(places);
  });

  it('shows broken guards by their sentences, and other values in JavaScript’s format', () => {
    const broken = [
      { guard: 'removed', limit: 0.2, found: 0.5, detail: '5 of 10 machines would be removed' },
      { guard: 'priced', limit: 3, found: 9, detail: 'a price would rise 9-fold' },
    ];
    expect(line({ level: 40, sourceId: 'linode', broken, msg: 'held' })).toMatch(
      / warn {2}held \(sourceId=linode broken="5 of 10 machines would be removed; a price would rise 9-fold"\)\n$/,
    );
    expect(line({ level: 40, document: { kind: 'region', regionId: 3 }, none: null, msg: 'lost' })).toMatch(
      /lost \(document=\{ kind: 'region', regionId: 3 \} none=null\)\n$/,
    );
  });

  it('cannot control the terminal nor fake another line, for any text of an upstream or a caller', () => {
    const evil = 'a\u001b[2J\u009b1mb\r\n16:00:00 up[1] error  all is lost\u202e\u2028c\u0007';
    const err = { type: 'TypeError', message: evil, stack: `TypeError: ${evil}` };
    for (const fields of [
      { msg: evil },
      { msg: 'm', url: evil },
      { msg: 'm', at: { evil } },
      { msg: 'm', err },
    ]) {
      const printed = line({ level: 40, ...fields });
      expect(printed).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+\n$/u);
      expect(printed).toContain('16:00:00');
    }
    expect(readableLine('no \u001b[2J entry', PLAIN)).toBe('no \\u{1b}[2J entry\n');
  });

  it('has its level in colour if the terminal has colours', () => {
    expect(line({ level: 50, msg: 'm' }, { ...PLAIN, colours: true })).toContain(
      '\u001b[31merror\u001b[39m m',
    );
    expect(line({ level: 30, msg: 'm' }, { ...PLAIN, colours: true })).toContain('] info  m');
  });
});
