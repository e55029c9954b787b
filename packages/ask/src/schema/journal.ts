/** Entries of the journal, as they are printed (ask.md 3). */
import type {
  JournalEntry,
  JournalInstance,
  JournalPods,
  JournalPrices,
  JournalShare,
  JournalSpend,
  JournalWaiting,
  JournalWorkload,
} from '@tenon/operator'
import type { PrintedEntry } from '../explain/documents.ts'
import {
  byName,
  count,
  decimal,
  type Fields,
  type JsonSchema,
  list,
  object,
  objectJson,
  only,
  optional,
  type Schema,
  text,
  time,
  words,
} from './build.ts'
import { document } from './document.ts'

const fields: Fields<PrintedEntry> = {
  id: text('name of the entry'),
  at: time(),
  type: words<JournalEntry['kind']>({
    decision: 'a scheduling pass that creates NodeClaims',
    launch: 'a NodeClaim was created',
    launched: 'it has an instance',
    registered: 'its Node has joined',
    initialized: 'its Node takes pods',
    move: 'a command has begun that removes or replaces nodes',
    refusal: 'a command was not begun, or given up',
    removal: 'a NodeClaim was deleted',
    removed: 'it and its instance are gone',
    failure: 'an instance was not launched, or a NodeClaim not deleted',
    brake: 'disruption or launches were paused or resumed',
    rollout: 'a rollout was paused, halted or resumed',
    spend: 'what instances cost, and for whom; every hour',
    seen: 'what another autoscaler and the scheduler did while this controller only observed',
  }),
  reason: text('in UpperCamel, such as Underutilized'),
  message: text('one sentence'),
  nodePool: optional(text()),
  nodeClaims: list(text(), 'those that go, or the one that the entry is about'),
  nodes: list(text(), 'as nodeClaims'),
  replacements: optional(list(text(), 'NodeClaims that come in place of those')),
  pods: optional(
    object<JournalPods>({
      count: count(),
      names: list(text(), 'the first few, as namespace/name'),
      workloads: optional(
        list(
          object<JournalWorkload>({
            namespace: text(),
            workload: text('such as deployment/web'),
            pods: count(),
          }),
          'those with the most pods',
        ),
      ),
    }),
  ),
  pricePerHour: optional(
    object<JournalPrices>(
      { before: optional(decimal()), after: optional(decimal()) },
      'absent where unknown',
    ),
  ),
  currency: optional(text()),
  instances: optional(
    list(
      object<JournalInstance>({ instanceType: optional(text()), pricePerHour: optional(decimal()) }),
      'nodes that exist, in the order of nodeClaims or nodes, or those that would be launched',
    ),
  ),
  waiting: optional(
    object<JournalWaiting>(
      { seconds: decimal(), plannedSeconds: optional(decimal()) },
      'how long pods have waited for a node, summed, and would have by the launch that was decided',
    ),
  ),
  spend: optional(
    list(
      object<JournalSpend>({
        nodePool: text(),
        pricePerHour: decimal('of its instances with a known price'),
        unpriced: count('instances without one'),
        shares: list(
          object<JournalShare>({
            namespace: text('empty for the smallest workloads together'),
            workload: text('such as deployment/web; empty for the rest of a namespace'),
            pricePerHour: decimal(),
            labels: optional(byName(text())),
          }),
          'by what pods request; the rest is idle',
        ),
      }),
    ),
  ),
  decision: optional(text('the decision, command or launch that it belongs to')),
  observed: optional(only(true, 'decided, and not carried out')),
}

export const entrySchema: Schema<PrintedEntry> = object<PrintedEntry>(fields)

interface EntryMetadata {
  readonly name: string
  readonly creationTimestamp: string
}

export const journalEntrySchema: JsonSchema = document<PrintedEntry>(
  'JournalEntry',
  'What the leading controller did; tenon journal prints a List of them.',
  fields,
  object<EntryMetadata>({ name: text(), creationTimestamp: time() }),
)

/** An entry as a line of a file, without metadata. */
export const entryLine: JsonSchema = objectJson(
  { apiVersion: only('tenon.sh/v1alpha1'), kind: only('JournalEntry') },
  fields,
)
