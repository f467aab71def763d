import { describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter, readRates } from '../../../src/sources/rates/ecb.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';

const file = (cubes: string, time = "time='2026-11-20'") => `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
	<gesmes:subject>Reference rates</gesmes:subject>
	<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>
	<Cube>
		<Cube ${time}>
			${cubes}
		</Cube>
	</Cube>
</gesmes:Envelope>
`;
const good = file("<Cube currency='USD' rate='1.1587'/>\n\t\t\t<Cube currency='JPY' rate='181.45'/>");

describe('the file of the European Central Bank', () => {
  it('gives the day and the units of each currency for one euro, unchanged', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/eurofxref-daily.xml' }, { raw: good, headers: { 'content-type': 'text/xml' } });
    const http = openSourceHttp({
      baseUrl: `${upstream.url}/eurofxref-daily.xml`,
      credentials: 'none',
      deadlineMs: 5000,
      maxBytes: 100_000,
    });
    expect(await adapter.rates({ http })).toEqual({
      asOf: '2026-11-20',
      perEuro: { USD: '1.1587', JPY: '181.45' },
    });
  });

  it.each([
    ['HTML', '<html><body>Maintenance</body></html>', 'invalid', /names no day/],
    ['without a day', file("<Cube currency='USD' rate='1.1'/>", ''), 'invalid', /names no day/],
    ['half a file', good.slice(0, good.indexOf('JPY')), 'retry', /ends too early/],
    ['a negative rate', file("<Cube currency='USD' rate='-1.1'/>"), 'invalid', /no rate/],
    ['a zero rate', file("<Cube currency='USD' rate='0'/>"), 'invalid', /no rate/],
    ['text for a rate', file("<Cube currency='USD' rate='N/A'/>"), 'invalid', /no rate/],
    [
      'a currency twice',
      file("<Cube currency='USD' rate='1'/><Cube currency='USD' rate='2'/>"),
      'invalid',
      /USD twice/,
    ],
    [
      'elements that never end',
      `<Cube currency='USD' ${'<Cube currency= '.repeat(16_000)}`,
      'retry',
      /too early/,
    ],
    ['such elements in a whole file', file('<Cube currency='.repeat(16_000)), 'invalid', /no rate/],
    ['an element of spaces', file(`<Cube${' '.repeat(250_000)}`), 'invalid', /no rate/],
    [
      'a rate of 60,000 digits',
      file(`<Cube currency='USD' rate='${'1'.repeat(60_000)}'/>`),
      'invalid',
      /no rate/,
    ],
    ['no rates', file(''), 'invalid', /holds no rate/],
  ])('is rejected if it is %s', (_name, xml, kind, message) => {
    expect(() => readRates(xml)).toThrow(
      expect.objectContaining({ kind, message: expect.stringMatching(message) }),
    );
  });
});
