/** Preloaded into a process: after SIGUSR2 its wall clock is an hour behind. */
const Clock = Date;
let aheadMs = 0;
process.on('SIGUSR2', () => {
  aheadMs = -3_600_000;
});
globalThis.Date = class extends Clock {
  constructor(...given) {
    if (given.length > 0) super(...given);
    else super(Clock.now() + aheadMs);
  }

  static now() {
    return Clock.now() + aheadMs;
  }
};
