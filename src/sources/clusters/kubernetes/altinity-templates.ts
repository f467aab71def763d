/** ClickHouseInstallationTemplates, merged as by Altinity's operator (`pkg/model/chi/normalizer/templates_cr`). */
import { z } from 'zod';
import type { Reference } from './kind.ts';
import { Labels } from './placement.ts';

const RESOURCE = 'clickhouseinstallationtemplates.clickhouse.altinity.com';

/** The name of an object or a namespace; another text has no address. */
const name = z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/);
const References = z
  .array(z.object({ name, namespace: name.or(z.literal('')).nullish() }).catch({ name: '' }))
  .nullish();

const Installation = z.object({
  metadata: z.object({ namespace: name, labels: Labels.catch({}) }),
  spec: z.object({ useTemplates: References.catch([]) }).catch({}),
  // The applied templates, with those that apply to every installation automatically.
  status: z
    .object({ usedTemplates: References.catch([]) })
    .nullish()
    .catch({}),
});

export function templatesOf(installation: unknown): readonly Reference[] {
  const { data } = Installation.safeParse(installation);
  if (data === undefined) return [];
  const used = [...(data.status?.usedTemplates ?? []), ...(data.spec.useTemplates ?? [])];
  const found = new Map<string, Reference>();
  for (const { name: template, namespace } of used) {
    const where = namespace || data.metadata.namespace;
    const what = template === '' ? 'template without a usable name' : `template ${where}/${template}`;
    const path = `/apis/clickhouse.altinity.com/v1/namespaces/${where}/clickhouseinstallationtemplates/${template}`;
    found.set(what, { what, resource: RESOURCE, path: template === '' ? undefined : path });
  }
  return [...found.values()];
}

const Template = z.object({
  spec: z.looseObject({ templating: z.object({ chiSelector: Labels }).nullish().catch(undefined) }).nullish(),
});

const Spec = z.looseObject({ spec: z.looseObject({}) });

/** Returns the installation with the absent fields from these templates. */
export function withTemplates(installation: unknown, templates: readonly unknown[]): unknown {
  const { data } = Spec.safeParse(installation);
  if (data === undefined) return installation;
  const labels = Installation.safeParse(installation).data?.metadata.labels ?? {};
  const layers = templates.flatMap((template) => {
    const { spec } = Template.catch({ spec: undefined }).parse(template);
    const selector = Object.entries(spec?.templating?.chiSelector ?? {});
    return spec != null && selector.every(([key, value]) => labels[key] === value) ? [spec] : [];
  });
  layers.push(data.spec);
  const merge = (part: 'defaults' | 'templates') =>
    layers.map((layer) => layer[part]).reduce((below, above) => merged(below, above));
  return {
    ...data,
    spec: {
      ...data.spec,
      defaults: merge('defaults'),
      templates: merge('templates'),
      // The clusters of several layers are not merged.
      configuration: layers.map((layer) => layer.configuration).findLast((each) => each != null),
    },
  };
}

/** The upper layer has priority unless its value is empty. Parts with the same name are merged, in lists too. */
function merged(below: unknown, above: unknown): unknown {
  if (isEmpty(above)) return below ?? above;
  if (isNamedList(below) && isNamedList(above)) {
    const known = new Map(below.map((each) => [each.name, each as unknown]));
    for (const each of above) known.set(each.name, merged(known.get(each.name), each));
    return [...known.values()];
  }
  if (!isPlain(below) || !isPlain(above)) return above;
  const keys = [...new Set([...Object.keys(below), ...Object.keys(above)])];
  return Object.fromEntries(keys.map((key) => [key, merged(below[key], above[key])]));
}

function isEmpty(value: unknown): boolean {
  return value == null || value === '' || (Array.isArray(value) && value.length === 0);
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNamedList(value: unknown): value is readonly { readonly name: string }[] {
  return Array.isArray(value) && value.every((each) => isPlain(each) && typeof each.name === 'string');
}
