/** A price per minute, as the price per hour that people know. */
export function hourly(perMinute: number): string {
  return String(Number((perMinute * 60).toPrecision(4)));
}
