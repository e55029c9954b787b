/** Explanations as JSON documents (ask.md 1). */
import type { KubeObject } from '@tenon/api'
import type { JournalEntry } from '@tenon/operator'
import type { NodeExplanation } from './node.ts'
import type { NodePoolExplanation } from './node-pool.ts'
import type { PodExplanation } from './pod.ts'
import type { RequestExplanation } from './request.ts'
import type { PodGroupExplanation } from './pod-group.ts'

/** A journal entry with the field names of `tenon journal -o json`. */
export interface PrintedEntry extends Omit<JournalEntry, 'kind'> {
  readonly type: JournalEntry['kind']
}

export interface PrintedPod extends Omit<PodExplanation, 'decision'> {
  readonly decision?: PrintedEntry
}

export interface PrintedNode extends Omit<NodeExplanation, 'madeBy' | 'history'> {
  readonly madeBy?: PrintedEntry
  readonly history: readonly PrintedEntry[]
}

const apiVersion = 'tenon.sh/v1alpha1'

export function podDocument({ decision, ...rest }: PodExplanation): KubeObject & PrintedPod {
  const { name, namespace } = rest
  return {
    apiVersion,
    kind: 'PodExplanation',
    metadata: { name, namespace },
    ...rest,
    ...(decision && { decision: printed(decision) }),
  }
}

/** @param name as the user gave it. */
export function nodeDocument(
  kind: 'NodeExplanation' | 'NodeClaimExplanation',
  name: string,
  { madeBy, history, ...rest }: NodeExplanation,
): KubeObject & PrintedNode {
  return {
    apiVersion,
    kind,
    metadata: { name },
    ...rest,
    ...(madeBy && { madeBy: printed(madeBy) }),
    history: history.map(printed),
  }
}

export function nodePoolDocument(explanation: NodePoolExplanation): KubeObject & NodePoolExplanation {
  return {
    apiVersion,
    kind: 'NodePoolExplanation',
    metadata: { name: explanation.name },
    ...explanation,
  }
}

export function requestDocument(explanation: RequestExplanation): KubeObject & RequestExplanation {
  const { name, namespace } = explanation
  return {
    apiVersion,
    kind: 'ProvisioningRequestExplanation',
    metadata: { name, namespace },
    ...explanation,
  }
}

export function podGroupDocument(explanation: PodGroupExplanation): KubeObject & PodGroupExplanation {
  const { name, namespace } = explanation
  return { apiVersion, kind: 'PodGroupExplanation', metadata: { name, namespace }, ...explanation }
}

function printed({ kind, ...rest }: JournalEntry): PrintedEntry {
  return { type: kind, ...rest }
}
