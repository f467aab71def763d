/** Previews the API's answer about one machine of a held batch: now, and after approval. */
import type { ReadersAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { addressWith, type Place } from '../../lib/router.ts';
import { Progress } from '../../parts/basics.tsx';

/** Regions of a row that are not folded: the clouds have more than fifty. */
const REGIONS = 6;

interface RegionLinksProps {
  readonly place: Place;
  readonly name: string;
  readonly regions: readonly string[];
}

/** Lists the regions. Each links to the preview of the machine there. The address of the page names the machine. */
export function RegionLinks({ place, name, regions }: RegionLinksProps) {
  const offset = place.query.get('offset') ?? '';
  const links = (some: readonly string[]) =>
    some.map((region, i) => (
      <span key={region}>
        {i > 0 && ', '}
        <a
          href={addressWith(place, { machine: name, region, offset })}
          aria-label={`Preview of ${name} in ${region}`}
        >
          {region}
        </a>
      </span>
    ));
  // Folding one region saves no space.
  const shown = regions.length > REGIONS + 1 ? REGIONS : regions.length;
  return (
    <>
      {links(regions.slice(0, shown))}
      {shown < regions.length && (
        <details>
          <summary>{regions.length - shown} more regions</summary>
          {links(regions.slice(shown))}
        </details>
      )}
    </>
  );
}

/** Shows the preview of the machine that the address names, if any. */
export function Preview({ batch, place }: { batch: number; place: Place }) {
  const [machine, region] = [place.query.get('machine'), place.query.get('region')];
  if (machine === null || region === null) return null;
  return <Answers batch={batch} place={place} machine={machine} region={region} />;
}

interface AnswersProps {
  readonly batch: number;
  readonly place: Place;
  readonly machine: string;
  readonly region: string;
}

function Answers({ batch, place, machine, region }: AnswersProps) {
  const query = new URLSearchParams({ machine, region });
  const answer = useData<ReadersAnswer>(`/api/held/${batch}/readers?${query}`);
  const { data, isOld } = answer;
  const offset = place.query.get('offset') ?? '';
  return (
    <section class="card readers" aria-labelledby="readers">
      <header>
        <h3 id="readers">
          Preview of {machine} in {region}
        </h3>
        <a class="button" href={addressWith(place, { machine: '', region: '', offset })}>
          Close
        </a>
      </header>
      <Progress {...answer} />
      {data && !isOld && (
        <>
          <Answer title="Now" id={data.id} body={data.now} other={data.after} />
          <Answer title="After approval" id={data.id} body={data.after} other={data.now} />
        </>
      )}
    </section>
  );
}

interface AnswerProps {
  readonly title: string;
  readonly id: number | null;
  readonly body: string | null;
  readonly other: string | null;
}

/** Shows one answer. Marks the lines that the other answer lacks. */
function Answer({ title, id, body, other }: AnswerProps) {
  const address = `/v1/machines/${id ?? '<id>'}`;
  const others = new Set(linesOf(other).map(withoutComma));
  return (
    <figure>
      <figcaption>
        {title}: <code>GET {address}</code> answers {body === null ? '404' : '200'}
      </figcaption>
      {body === null ? (
        <p class="muted">Readers do not get this machine.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll the element
        <pre tabIndex={0}>
          {linesOf(body).map((line, at) => (
            <span
              key={`${at} ${line}`}
              class={others.size > 0 && !others.has(withoutComma(line)) ? 'differs' : ''}
            >
              {line}
              {'\n'}
            </span>
          ))}
        </pre>
      )}
      {body !== null && id === null && <p class="muted">The approval gives it an id.</p>}
    </figure>
  );
}

/** The lines of the indented JSON. */
const linesOf = (body: string | null): string[] =>
  body === null ? [] : JSON.stringify(JSON.parse(body), undefined, 2).split('\n');

/** Removes the comma, so that the last line of an object compares equal to the same line elsewhere. */
const withoutComma = (line: string): string => line.replace(/,$/, '');
