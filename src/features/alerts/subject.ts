/** Kinds of alerts about Fleetbook itself, not about a source. */
const OWN_KINDS: readonly string[] = ['publication_behind', 'cache_differs', 'exports_behind'];

/** The id of the source that an alert is about; undefined for an alert about Fleetbook itself. */
export function sourceOfAlert({
  kind,
  subject,
}: {
  readonly kind: string;
  readonly subject: string;
}): string | undefined {
  // The subject of a region is `hetzner/fsn1`, that of a run `hetzner#12`.
  return OWN_KINDS.includes(kind) ? undefined : subject.split(/[/#]/)[0];
}
