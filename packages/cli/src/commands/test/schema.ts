/** What `tenon test` prints (ask.md 7). */
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
} from '@tenon/ask/schema'
import type { PrintedTests } from './run.ts'

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
