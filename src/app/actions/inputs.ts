/** The inputs of actions: what commands, the console and its API take. A message follows the name of its field in a sentence. */
import { z } from 'zod';
import { LONGEST_REASON } from '../../domain/operator.ts';
import { SCOPES, type Scope } from '../../domain/scope.ts';
import { ORGANIZATION_SLUG } from '../../domain/text/names.ts';
import { readAhead, readSpan } from '../../domain/text/time-span.ts';

const text = (missing = 'is missing') =>
  z.string({ error: ({ input }) => (input === undefined ? missing : 'must be a text') }).trim();

const isLine = (value: string, longest: number) =>
  value !== '' && value.length <= longest && !/\p{Cc}/u.test(value);

const line = (longest: number, missing?: string) =>
  text(missing).refine((value) => isLine(value, longest), `must be one line of 1 to ${longest} characters`);

const reason = line(LONGEST_REASON, 'is missing; give a reason, which the audit log stores');

/** Who decides, and why. Without a name the operator is the one who is signed in. */
export const givenDecider = z.object({
  by: line(LONGEST_REASON).optional(),
  reason: reason.optional(),
});

/** A decision that needs a reason. */
export const reasoned = z.object({ reason });

/** An approval that no terminal confirms. @param remedy the command with a reason */
export const unconfirmedApproval = (remedy: string) =>
  z.object({
    reason: line(LONGEST_REASON, `an approval without a terminal needs a reason: ${remedy}`),
  });

/** A quarantined price, as an operator read it. @param shownBy the command that shows such prices */
export const acceptedPrice = (shownBy: string) =>
  z.object({
    /** The row that the command shows. */
    machine: z.string(),
    amount: text().regex(/^\d{1,30}(?:\.\d{1,30})?$/, {
      error: ({ input }) =>
        `${JSON.stringify(input)} is not a price; give the amount that ${shownBy} shows, e.g. 0.0119`,
    }),
  });

const LONGEST_NAME = 200;
const displayName = line(LONGEST_NAME, 'is missing; give the new name');

/** The name is the slug unless given. */
export const newOrganization = z
  .object({
    slug: text().regex(ORGANIZATION_SLUG, {
      error: ({ input }) =>
        `${JSON.stringify(input)} is not a slug; use 1 to 63 lower-case letters, digits and dashes, e.g. acme`,
    }),
    name: displayName.optional(),
  })
  .transform(({ slug, name = slug }) => ({ slug, name }));

export const renamedOrganization = z.object({ name: displayName });

/** @param slug of the organization, which a page repeats to confirm */
export const deletedOrganization = (slug: string) =>
  z.object({
    reason,
    slug: z.literal(slug, `must be ${slug}, to confirm: this cannot be undone`),
  });

/** The name of a person who made clusters. @param remedy for an empty name */
export const renamedPerson = (remedy: string) =>
  z
    .object({ firstName: text().default(''), lastName: text().default('') })
    .superRefine(({ firstName, lastName }, context) => {
      const refuse = (message: string) => context.addIssue({ code: 'custom', path: ['firstName'], message });
      if (/\p{Cc}/u.test(firstName + lastName))
        refuse('and the last name must each be one line of visible characters');
      else if (firstName.length > LONGEST_NAME || lastName.length > LONGEST_NAME)
        refuse(`and the last name must each have at most ${LONGEST_NAME} characters`);
      else if (firstName === '' && lastName === '') refuse(`and the last name are both empty; ${remedy}`);
    });

const expires = text().transform((value, context) => {
  const now = new Date();
  const at = readAhead(value, now);
  if (at !== undefined && at > now) return at;
  context.addIssue({
    code: 'custom',
    message:
      at === undefined
        ? `${JSON.stringify(value)} is not a time; use e.g. 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z`
        : `${JSON.stringify(value)} is in the past; give a future time`,
  });
  return z.NEVER;
});

/** The name of a token, and its last moment. */
export const tokenTerms = z.object({ name: displayName.optional(), expires: expires.optional() });

const scope = z.enum(SCOPES, {
  error: ({ input }) => `${JSON.stringify(input)} is not a scope; use ${SCOPES.join(' or ')}`,
});

const SCOPE_LIST = `must be a list of one or more of ${SCOPES.join(', ')}, each once`;

export const newToken = tokenTerms.extend({
  scopes: z
    .array(scope, SCOPE_LIST)
    .refine((given) => given.length > 0 && new Set(given).size === given.length, SCOPE_LIST)
    .transform((given): readonly Scope[] => SCOPES.filter((each) => given.includes(each))),
});

/** How long the old token stays valid, in milliseconds; 0 unless given. */
export const rotation = z.object({
  grace: text()
    .optional()
    .transform((value, context) => {
      const span = value === undefined ? 0 : readSpan(value);
      if (span !== undefined) return span;
      context.addIssue({
        code: 'custom',
        message: `${JSON.stringify(value)} is not a span; use e.g. 30m, 1h or 7d`,
      });
      return z.NEVER;
    }),
});

const LONGEST_SNOOZE_MS = 30 * 86_400_000;

/** How long an alert is snoozed, in milliseconds. */
export const snoozedAlert = z.object({
  for: z
    .string()
    .optional()
    .transform((given, context) => {
      const ms = given === undefined ? undefined : readSpan(given);
      if (ms !== undefined && ms <= LONGEST_SNOOZE_MS) return ms;
      context.addIssue({
        code: 'custom',
        message: `must be a span such as 30m, 4h or 7d, at most 30d${given === undefined ? '' : `; it is ${JSON.stringify(given)}`}`,
      });
      return z.NEVER;
    }),
});

export const cancelledRun = z.object({ reason, run: z.int('must be the number of the run') });

/** @param id of the source, which a page repeats to confirm */
export const retiredSource = (id: string) =>
  z.object({
    reason,
    confirm: z.literal(id, `must be the id of the source, ${JSON.stringify(id)}, to confirm`),
  });
