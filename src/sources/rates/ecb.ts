import { z } from 'zod';
import type { ReferenceRates } from '../../domain/prices/exchange-rates.ts';
import { withoutQuery } from '../http/address.ts';
import { readBytes } from '../http/body.ts';
import { amount, currencyCode } from '../schema/fields.ts';
import { badAnswer, passingFailure, type RatesReading, type SourceContext } from '../source.ts';

const MOST_BYTES = 256 * 1024;

const Rate = z.object({ currency: currencyCode, rate: amount });

/** The euro's reference rates: a small XML file that the ECB replaces each working day at about 16:00 CET. */
export const adapter = {
  id: 'ecb',
  baseUrl: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml',
  credentials: 'none',
  /** Before the daily catalogues, and after the file is replaced. Reading the same file again changes nothing. */
  schedule: '40 5,15,17 * * *',

  /** Elements such as `<Cube currency='USD' rate='1.0845'/>` need no XML library. */
  async rates({ http }: Pick<SourceContext, 'http'>): Promise<RatesReading> {
    const answer = await http.streamIfModified('');
    if ('unmodified' in answer) return answer;
    const { body, url, validator } = answer;
    const bytes = await readBytes(body, MOST_BYTES, withoutQuery(url));
    const rates = readRates(Buffer.from(bytes).toString('utf8'));
    return validator === undefined ? rates : { ...rates, validator };
  },
} as const;

export function readRates(xml: string): ReferenceRates {
  if (isCut(xml)) throw passingFailure('the file of rates ends too early');
  const elements = [...xml.matchAll(/<Cube\s([^<>]{1,200})>/g)].map(([, attributes = '']) => attributes);
  const asOf = elements.map((each) => /\btime=["'](\d{4}-\d{2}-\d{2})["']/.exec(each)?.[1]).find(Boolean);
  if (asOf === undefined || Number.isNaN(Date.parse(asOf))) {
    throw badAnswer('the answer is no file of reference rates: it names no day');
  }
  const perEuro: Record<string, string> = {};
  for (const attributes of elements.filter((each) => /^\s*currency=/.test(each))) {
    const currency = /\bcurrency=["']([^"']*)["']/.exec(attributes)?.[1];
    const rate = /\brate=["']([^"']*)["']/.exec(attributes)?.[1];
    const read = Rate.safeParse({ currency, rate });
    if (!read.success || Number(read.data.rate) <= 0) {
      const shown = attributes.replace(/\/$/, '').trim().slice(0, 60);
      throw badAnswer(`the file of rates holds <Cube ${shown}/>, which is no rate`);
    }
    if (perEuro[read.data.currency] !== undefined) {
      throw badAnswer(`the file of rates names ${read.data.currency} twice`);
    }
    perEuro[read.data.currency] = read.data.rate;
  }
  if (Object.keys(perEuro).length === 0) throw badAnswer('the file of rates holds no rate');
  return { asOf, perEuro };
}

function isCut(xml: string): boolean {
  const isPage = /<(!doctype\s+)?html\b/i.test(xml);
  return !isPage && /^\s*(<|$)/.test(xml) && !/<\/[\w:]*Envelope>\s*$/.test(xml);
}
