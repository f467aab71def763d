import { describe, expect, it } from 'vitest';
import { readVegeta } from '../../bench/read/vegeta.ts';

/** Printed by `vegeta report -type=json`, without the latencies. */
const REPORT = {
  bytes_in: { total: 0, mean: 0 },
  duration: 1_000_000_000,
  requests: 11_942,
  rate: 11_941.3,
  throughput: 11_931.5,
  success: 1,
  status_codes: { '200': 11_942 },
  errors: [],
};

describe('the report of vegeta', () => {
  it('has the answers a second and the total', () => {
    expect(readVegeta(JSON.stringify(REPORT))).toEqual({ perSecond: 11_931.5, answers: 11_942 });
  });

  it('is rejected with other statuses or errors', () => {
    const report = {
      ...REPORT,
      success: 0.9,
      status_codes: { '200': 9, '401': 1 },
      errors: ['401 Unauthorized'],
    };
    expect(() => readVegeta(JSON.stringify(report))).toThrow('{"200":9,"401":1} 401 Unauthorized');
  });

  it('is rejected without an answer', () => {
    expect(() => readVegeta(JSON.stringify({ ...REPORT, requests: 0, success: 0, errors: null }))).toThrow(
      'not answered',
    );
  });
});
