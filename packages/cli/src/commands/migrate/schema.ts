/** What `tenon migrate -o json` prints, one object a line (adoption.md 2). */
import {
  count,
  document,
  type JsonSchema,
  list,
  object,
  optional,
  text,
  time,
  words,
} from '@tenon/ask/schema'
import { added, price } from '../simulate/schema.ts'
import type { PrintedPlan } from './print.ts'
import type { Progress, StayingNode } from './progress.ts'

const staying = list(object<StayingNode>({ node: text(), reasons: list(text()) }))

export const migrationPlanSchema: JsonSchema = document<PrintedPlan & { readonly time: string }>(
  'MigrationPlan',
  'Which nodes a migration would remove, and where their pods would go: the first line of tenon migrate.',
  {
    time: time(),
    from: text('such as sks-nodepool workers'),
    to: text(),
    turns: list(
      object<PrintedPlan['turns'][number]>({ node: text(), pods: list(text('namespace/name')) }),
      'nodes that go, in their order, with the pods that move',
    ),
    staying,
    comingNodes: count('that the target gets before'),
    podsLosingFiles: list(text(), 'those with an emptyDir'),
    priceBefore: price,
    priceAfter: price,
    added: list(added),
    currency: optional(text()),
    problem: optional(text('why the plan cannot be carried out')),
  },
  'none',
)

/** All fields of all events. */
type Fields<T> = T extends unknown ? keyof T : never
type Valued<Name extends string> =
  Extract<Progress, { readonly [Key in Name]?: unknown }> extends infer Of
    ? Of extends { readonly [Key in Name]?: infer Value }
      ? Value
      : never
    : never
type PrintedProgress = { readonly event: Progress['event']; readonly time: string } & {
  readonly [Name in Exclude<Fields<Progress>, 'event'>]?: Valued<Name>
}

export const migrationProgressSchema: JsonSchema = document<PrintedProgress>(
  'MigrationProgress',
  'What a migration does, as it does it: the other lines of tenon migrate --yes.',
  {
    time: time(),
    event: words<Progress['event']>({
      waiting: 'for the lease of a migration that may have been killed (holder)',
      paused: 'launches of the NodePool (nodePool)',
      resumed: 'launches of the NodePool (nodePool)',
      cordoned: '(node)',
      uncordoned: '(node)',
      growing: 'the node group (group, from, to)',
      draining: '(node, pods, nodesAfter)',
      removed: 'drained, and its removal has begun (node)',
      stopped: 'nothing further is done, and the command fails (node, why)',
      ended: 'the command fails if nodes stay (removed, staying, pausedNodePool)',
    }),
    holder: optional(text('of the lease')),
    nodePool: optional(text()),
    node: optional(text()),
    group: optional(text('such as sks-nodepool workers')),
    from: optional(count('nodes')),
    to: optional(count('nodes')),
    pods: optional(count('that move')),
    nodesAfter: optional(count('that are drained later')),
    why: optional(text()),
    removed: optional(count('nodes')),
    staying: optional(staying),
    pausedNodePool: optional(text('launches nothing until tenon resume')),
  },
  'none',
)
