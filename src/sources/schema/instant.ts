const INSTANT =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):?(\d{2}))?$/;

/**
 * Returns an instant as UTC `YYYY-MM-DDTHH:MM:SS.ffffff`. The text has up to nine fractional digits, and `Z`, an offset or
 * neither (then it is UTC). Digits after the sixth are dropped; a Date would keep only three. Undefined for another text,
 * such as a 30th of February.
 */
export function utcMicroseconds(text: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const local = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // The parser reads a 30th of February as the 1st of March, and 24:00 as the next day.
  if (Number.isNaN(local.getTime()) || !local.toISOString().startsWith(`${year}-${month}-${day}T${hour}`)) {
    return undefined;
  }
  if (Number(offsetHours ?? 0) > 23 || Number(offsetMinutes ?? 0) > 59) return undefined;
  const offset = (Number(offsetHours ?? 0) * 60 + Number(offsetMinutes ?? 0)) * 60_000;
  const utc = new Date(local.getTime() + (sign === '-' ? offset : -offset)).toISOString();
  // Outside the years 0001 to 9999 the text has another form, and Postgres another calendar.
  if (!/^\d{4}-/.test(utc) || utc.startsWith('0000')) return undefined;
  return `${utc.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}`;
}
