/** A decision as data: nodes that go, their replacements, and its texts. */
import {
  type DisruptionReason,
  labels,
  type NodeClaim,
  type Pod,
  type PricePerHour,
  type Requirement,
} from '@tenon/api'
import type { LogFields } from '@tenon/runtime'
import { labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import type { Candidate } from '../candidates.ts'

/** A claim that was created. */
interface Created {
  readonly kind: 'created'
  readonly claim: NodeClaim
}

/** A claim to create in place of nodes that go. */
export interface Replacement {
  readonly nodePool: string
  readonly requirements: readonly Requirement[]
  /** Cheapest first; empty when they are not narrowed. */
  readonly instanceTypes: readonly string[]
  /** Expected price; undefined if unknown. */
  readonly pricePerHour?: PricePerHour
  /**
   * If no claim is created, its reservations are released.
   * @param replaced the claims whose nodes it replaces.
   * @throws KubeError.
   */
  readonly create: (replaced: readonly NodeClaim[], signal: AbortSignal) => Promise<Created | Overtaken>
  /** Releases its reservations if its creation is not even tried. */
  readonly abandon?: () => void
}

/** Why nodes go: a reason of the API, or `Unhealthy` for repairs, which budgets do not concern (wanted.md 2). */
export type CommandReason = DisruptionReason | 'Unhealthy'

/** How a decision came about, as metrics say it. */
export type ConsolidationType = '' | 'empty' | 'multi' | 'single'

/** Nodes to disrupt, and the replacements that must be ready first. */
export interface Command {
  readonly reason: CommandReason
  readonly type: ConsolidationType
  readonly candidates: readonly Candidate[]
  readonly replacements: readonly Replacement[]
  /** Nodes that take pods of the candidates. */
  readonly destinations: readonly StateNode[]
  /** Per hour; undefined for reasons other than cost. */
  readonly savings?: number
  /** Pods of the candidates in the order in which they have to move; undefined if any order will do. */
  readonly waves?: readonly (readonly Pod[])[]
  /** All of its nodes are disrupted or none: gangs on them only move as a whole (gangs.md 7.5). */
  readonly isWhole?: boolean
  /** Set if the pods of the nodes do not matter, but something else does. */
  readonly terms?: CommandTerms
}

/** What a command asks instead of examining pods. */
export interface CommandTerms {
  /** Why the node must stay, by the caches or (`fresh`) by the API server; undefined if it may go. */
  readonly whyStays: (
    candidate: Candidate,
    from: 'cache' | 'fresh',
    signal: AbortSignal,
  ) => Promise<string | undefined>
  /** Its claim was deleted. */
  readonly deleted: (candidate: Candidate) => void
}

export function decisionOf({ replacements }: Command): 'delete' | 'replace' {
  return replacements.length === 0 ? 'delete' : 'replace'
}

/** What the log says when the command begins (disruption.md 18). */
export function logFields(id: string, command: Command): LogFields {
  const { candidates, replacements, reason } = command
  const replacementNodes = replacements.map(({ requirements, instanceTypes }) => ({
    'capacity-type': bestCapacityType(requirements),
    ...(replacements.length === 1 && { 'instance-types': firstOf(instanceTypes) }),
  }))
  return {
    'command-id': id,
    command: `${reason}/${id}: ${commandText(command)}`,
    decision: decisionOf(command),
    'disrupted-node-count': candidates.length,
    'replacement-node-count': replacements.length,
    'pod-count': candidates.reduce((count, { pods }) => count + pods.length, 0),
    'disrupted-nodes': candidates.map((candidate) => ({
      Node: { name: candidate.node.metadata.name },
      NodeClaim: { name: candidate.claim.metadata.name },
      'instance-type': labelsOf(candidate)[labels.instanceType] ?? '',
      'capacity-type': labelsOf(candidate)[labels.capacityType] ?? '',
    })),
    ...(replacementNodes.length > 0 && { 'replacement-nodes': replacementNodes }),
  }
}

/** `delete: nodepools=[a]: [n1, n2] (savings: $0.10)`. */
function commandText(command: Command): string {
  const { candidates, replacements, savings } = command
  const nodes = candidates.map(({ node }) => node.metadata.name).join(', ')
  const into =
    replacements.length === 0
      ? ''
      : ` -> [${replacements.length} replacement${replacements.length > 1 ? 's' : ''}]`
  const saved = savings === undefined ? '' : ` (savings: $${savings.toFixed(2)})`
  return `${decisionOf(command)}: nodepools=[${poolsOf(command).join(', ')}]: [${nodes}]${into}${saved}`
}

/** Names of the NodePools of the nodes. */
export function poolsOf({ candidates }: Pick<Command, 'candidates'>): readonly string[] {
  return [...new Set(candidates.map(({ pool }) => pool.metadata.name))].toSorted()
}

function bestCapacityType(requirements: readonly Requirement[]): string {
  const values = requirements.find(({ key }) => key === labels.capacityType)?.values ?? []
  return ['reserved', 'spot', 'on-demand'].find((each) => values.includes(each)) ?? 'on-demand'
}

const namedTypes = 5

function firstOf(names: readonly string[]): string {
  const rest = names.length - namedTypes
  return names.slice(0, namedTypes).join(', ') + (rest > 0 ? ` and ${rest} other(s)` : '')
}

/** `WhenEmptyOrUnderutilized` as metrics write it: `when_empty_or_underutilized`. */
export function policyLabel(policy = 'WhenEmptyOrUnderutilized'): string {
  return policy.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
}
