/** Reports of checks and of cases under test (ask.md 7, 10). */
import type { CaseExpectations, CaseFailure } from '@tenon/ask'
import {
  count,
  decimal,
  document,
  type JsonSchema,
  list,
  object,
  only,
  optional,
  text,
  union,
  words,
} from '@tenon/ask/schema'
import type { PrintedTests } from '../commands/test.ts'
import type { PrintedValidation } from '../commands/validate.ts'
import type { PrintedPreflight } from '../preflight/render.ts'
import type { Finding } from '../preflight/result.ts'

type Pending = NonNullable<CaseExpectations['pending']>[number]

const expectations = object<CaseExpectations>({
  running: optional(union(only('all'), count())),
  nodePools: optional(list(text())),
  instanceTypes: optional(list(text())),
  noInstanceTypes: optional(list(text())),
  nodesAtMost: optional(count()),
  pricePerHourAtMost: optional(decimal()),
  zonesBalanced: optional(only(true)),
  noDisruption: optional(only(true)),
  pending: optional(list(object<Pending>({ pod: text(), reason: optional(text('a reason code')) }))),
})

export const testSchema: JsonSchema = document<PrintedTests>(
  'TestReport',
  'Cases that were run: tenon test.',
  {
    cases: list(
      object<PrintedTests['cases'][number]>({
        file: text(),
        name: text(),
        failures: list(
          object<CaseFailure>({
            field: text('such as expect.nodesAtMost'),
            expected: text(),
            found: text(),
            explanation: optional(text('why, where a pod waits')),
          }),
        ),
        observed: optional(expectations),
        problem: optional(text('why it could not be run')),
      }),
    ),
  },
  'none',
)

const status = { ok: '', warn: '', fail: 'keeps an installation from working' }

export const preflightSchema: JsonSchema = document<PrintedPreflight>(
  'PreflightReport',
  'Checks before an installation: tenon preflight.',
  {
    status: words<PrintedPreflight['status']>(status),
    checks: list(
      object<PrintedPreflight['checks'][number]>({
        name: text(),
        status: words<PrintedPreflight['status']>(status),
        message: optional(text('what was found in order; absent with findings')),
        findings: list(
          object<Finding>({
            status: words<Finding['status']>({ warn: '', fail: '' }),
            message: text(),
            fix: text(),
          }),
        ),
        durationMs: count(),
      }),
    ),
  },
  'none',
)

export const validationSchema: JsonSchema = document<PrintedValidation>(
  'ValidationReport',
  'What is wrong with manifests: tenon validate.',
  {
    files: count(),
    objects: count('that were checked'),
    skipped: count('objects of kinds that are not checked'),
    errors: count(),
    warnings: count(),
    problems: list(
      object<PrintedValidation['problems'][number]>({
        file: text(),
        line: count('from 1'),
        column: count('from 1'),
        severity: words<'error' | 'warning'>({ error: '', warning: '' }),
        object: optional(text('such as NodePool default')),
        field: text('path in the object; empty for the object as a whole'),
        message: text(),
        fix: optional(text('what to write instead')),
      }),
    ),
  },
  'none',
)
