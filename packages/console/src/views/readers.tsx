/** What readers see of one machine of a held batch: now, and if it were approved, side by side. */
import type { ReadersAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { addressWith, type Place } from '../lib/router.ts';
import { Trouble } from '../parts/basics.tsx';

/** Which machine is shown is part of the address. */
export function SeeLink({ place, name, regionCode }: { place: Place; name: string; regionCode: string }) {
  const offset = place.query.get('offset') ?? '';
  return (
    <a
      href={addressWith(place, { machine: name, region: regionCode, offset })}
      aria-label={`Preview of ${name} in ${regionCode}`}
    >
      Preview
    </a>
  );
}

/** Nothing while no machine is chosen. */
export function ReadersView({ batch, place }: { batch: number; place: Place }) {
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
  const { data, error, isOld } = useData<ReadersAnswer>(`/api/held/${batch}/readers?${query}`);
  const offset = place.query.get('offset') ?? '';
  return (
    <section class="card readers" aria-labelledby="readers">
      <header>
        <h3 id="readers">
          What readers see of {machine} in {region}
        </h3>
        <a class="button" href={addressWith(place, { machine: '', region: '', offset })}>
          Close
        </a>
      </header>
      <Trouble text={error} />
      {data && !isOld && (
        <>
          <Answer title="Now" id={data.id} body={data.now} other={data.after} />
          <Answer title="If it is approved" id={data.id} body={data.after} other={data.now} />
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

/** One answer, its lines that the other one has not marked. */
function Answer({ title, id, body, other }: AnswerProps) {
  const address = `/v1/machines/${id ?? '<id>'}`;
  const others = new Set(linesOf(other).map(withoutComma));
  return (
    <figure>
      <figcaption>
        {title}: <code>GET {address}</code> answers {body === null ? '404' : '200'}
      </figcaption>
      {body === null ? (
        <p class="muted">There is no such machine for readers.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled is reached by keyboard
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
      {body !== null && id === null && <p class="muted">It gets its id when it is stored.</p>}
    </figure>
  );
}

/** Indented, a line each. */
const linesOf = (body: string | null): string[] =>
  body === null ? [] : JSON.stringify(JSON.parse(body), undefined, 2).split('\n');

/** What comes after a line makes no difference to it. */
const withoutComma = (line: string): string => line.replace(/,$/, '');
