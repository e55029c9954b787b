/** The JSON Schemas of this package's output, by kind (ask.md 1). */
import type { JsonSchema } from './build.ts'
import {
  nodeClaimSchema,
  nodePoolSchema,
  nodeSchema,
  podGroupSchema,
  podSchema,
  requestSchema,
  workloadSchema,
} from './explanations.ts'
import { snapshotSchema, traceSchema } from './files.ts'
import { journalEntrySchema } from './journal.ts'

export const askSchemas: Readonly<Record<string, JsonSchema>> = {
  PodExplanation: podSchema,
  PodGroupExplanation: podGroupSchema,
  WorkloadExplanation: workloadSchema,
  NodeExplanation: nodeSchema,
  NodeClaimExplanation: nodeClaimSchema,
  NodePoolExplanation: nodePoolSchema,
  ProvisioningRequestExplanation: requestSchema,
  JournalEntry: journalEntrySchema,
  Snapshot: snapshotSchema,
  Trace: traceSchema,
}
