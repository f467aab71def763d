const INSTANT =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):?(\d{2}))?$/;

/**
 * An instant as control planes write it — up to nine fractional digits, `Z`, an offset or (then UTC) neither — as
 * UTC `YYYY-MM-DDTHH:MM:SS.ffffff`. Digits beyond the sixth are cut off; a Date would keep only three. Undefined
 * for what is no instant, such as a 30th of February.
 */
export function utcMicroseconds(text: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const local = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // The parser takes a 30th of February for the 1st of March, and 24:00 for the next day.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(`${year}-${month}-${day}T${hour}`)) {
    return undefined;
  }
  if (Number(offsetHours ?? 0) > 23 || Number(offsetMinutes ?? 0) > 59) return undefined;
  const offset = (Number(offsetHours ?? 0) * 60 + Number(offsetMinutes ?? 0)) * 60_000;
  const utc = new Date(local.getTime() + (sign === '-' ? offset : -offset)).toISOString();
  // Beyond the years 0001 to 9999 the text has another form, and Postgres another calendar.
  if (!/^\d{4}-/.test(utc) || utc.startsWith('0000')) return undefined;
  return `${utc.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}`;
}
