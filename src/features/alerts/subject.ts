/** Kinds of alerts about a source. Every other kind is about Fleetbook itself. */
const OF_SOURCES: readonly string[] = [
  'batch_held',
  'source_stale',
  'region_stale',
  'source_failing',
  'sold_out',
  'source_set_aside',
  'prices_moved',
];

/** The id of the source that an alert is about; undefined for an alert about Fleetbook itself. */
export function sourceOfAlert({
  kind,
  subject,
}: {
  readonly kind: string;
  readonly subject: string;
}): string | undefined {
  // The subject of a region is `hetzner/fsn1`, that of a run `hetzner#12`.
  return OF_SOURCES.includes(kind) ? subject.split(/[/#]/)[0] : undefined;
}
