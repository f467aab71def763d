/**
 * Loaded into a worker by `node --import`. At the first step that DIE_AT names, the process kills itself with SIGKILL. At the
 * first step that HANG_AT names, it stops itself with SIGSTOP. See steps.ts. The program has no code for it.
 */
import { Socket } from 'node:net';
import { setTracer, type Tracer } from '../../../src/domain/tracer.ts';
import { STEPS, type Step } from './steps.ts';

const { DIE_AT, HANG_AT } = process.env;
const name = DIE_AT ?? HANG_AT ?? '';
const step: Step | undefined = STEPS[name];
if (step === undefined) throw new Error(`DIE_AT or HANG_AT names no step: ${name}`);
let isArmed = step.once === undefined;
let isOver = false;

/** Returns after SIGCONT. */
function strike(): void {
  if (isOver) return;
  isOver = true;
  process.kill(process.pid, DIE_AT === undefined ? 'SIGSTOP' : 'SIGKILL');
  // The signal must arrive before other code runs.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
}

if ('span' in step) strikeAtSpan(step);
watchSent(step);

function strikeAtSpan({ span, at }: Extract<Step, { span: string }>): void {
  const tracer: Tracer = (name, _, work) => {
    if (!isArmed || name !== span) return work(() => {});
    if (at === 'begin') strike();
    const result = work(() => {});
    if (at === 'end' && result instanceof Promise) return result.finally(strike) as typeof result;
    if (at === 'end') strike();
    return result;
  };
  setTracer(tracer);
}

/** Watches all data that the process sends to PostgreSQL and Redis. */
function watchSent(step: Step): void {
  const write = Socket.prototype.write as (this: Socket, ...given: unknown[]) => boolean;
  Socket.prototype.write = function (this: Socket, ...given: unknown[]): boolean {
    const [chunk] = given;
    if (this.remotePort !== undefined && (typeof chunk === 'string' || chunk instanceof Uint8Array)) {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1');
      isArmed ||= step.once?.test(text) === true;
      if (isArmed && 'sends' in step && step.sends.test(text)) {
        if (step.at === 'before') strike();
        else this.prependOnceListener('data', strike);
      }
    }
    return write.apply(this, given);
  } as typeof Socket.prototype.write;
}
