/** What users are told of a search for consolidation (disruption.md 10, 12, 18). */
import type { Logger } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import type { KubeObject } from '@tenon/api'
import {
  balancedThreshold,
  type ConsolidationRemark,
  type NodeRefusal,
  renderPodReason,
  renderShortage,
  type RemovalResult,
  type Verdict,
} from '@tenon/engine'
import { keyOf } from '../cluster/pods/pods.ts'
import type { Candidate } from './candidates.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly logger: Logger
}

/** Why a node is left alone is not told again within this time. */
export const unconsolidatableMs = 15 * 60_000
const listedPods = 5
/** Doubles the threshold to one: what a move must save per share of the disruption (disruption.md 1). */
const balancedFactor = 2

/** Says on the Node and its claim why consolidation leaves them alone. */
export function tellUnconsolidatable(deps: Dependencies, candidate: Candidate, reason: string): void {
  tell(deps, [candidate.node, candidate.claim], {
    reason: 'Unconsolidatable',
    message: reason.charAt(0).toUpperCase() + reason.slice(1),
    values: [],
    dedupeTtlMs: unconsolidatableMs,
  })
}

/** Tells of what a search came across, and counts it. */
export function tellRemarks(
  deps: Dependencies,
  remarks: readonly ConsolidationRemark[],
  candidates: ReadonlyMap<string, Candidate>,
): void {
  const claimOf = claimNames(deps)
  for (const remark of remarks) {
    if (remark.kind === 'refused') {
      const candidate = candidates.get(remark.node)
      if (candidate !== undefined) tellUnconsolidatable(deps, candidate, refusalText(remark.refusal, claimOf))
      continue
    }
    const nodes = remark.nodes.flatMap((name) => candidates.get(name) ?? [])
    if (remark.kind === 'possible') {
      if (remark.replacements > 0) tellCommand(deps, 'ConsolidationCandidate', nodes, remark)
    } else tellScores(deps, nodes, remark)
  }
}

/** Says on every node of a command that was decided and then not begun why that is. */
export function tellRejected(
  deps: Dependencies,
  nodes: readonly Candidate[],
  command: CommandSummary,
  because: string,
): void {
  tellCommand(deps, 'ConsolidationRejected', nodes, command, because)
}

interface CommandSummary {
  readonly replacements: number
  /** Per hour. */
  readonly savings: number
}

function tellCommand(
  deps: Dependencies,
  reason: string,
  nodes: readonly Candidate[],
  { replacements, savings }: CommandSummary,
  because?: string,
): void {
  for (const { node, claim } of nodes) {
    const into = replacements === 0 ? '' : ` -> [${replacements} replacement${replacements > 1 ? 's' : ''}]`
    const part = nodes.length > 1 ? `, part of ${nodes.length}` : ''
    const command = `${replacements === 0 ? 'delete' : 'replace'}: [${node.metadata.name}${part}]${into}`
    tell(deps, [node, claim], {
      reason,
      message:
        `${command} (savings: $${savings.toFixed(2)})` +
        (because === undefined ? '' : `, rejected: ${because}`),
      values: because === undefined ? [command] : [command, because],
    })
  }
}

function tellScores(
  deps: Dependencies,
  nodes: readonly Candidate[],
  { verdicts, isApproved, nodes: names }: Extract<ConsolidationRemark, { kind: 'scored' }>,
): void {
  const { metrics, caches, logger } = deps
  for (const verdict of verdicts) {
    const { nodePool: nodepool, policy, score } = verdict
    const decided = (approved: boolean) => (approved ? 'approved' : 'rejected')
    metrics.consolidationMoves.inc({ decision: decided(isApproved), nodepool, policy })
    if (policy === 'Balanced')
      metrics.consolidationScore.observe({ decision: decided(verdict.isApproved), nodepool, policy }, score)
    logger.debug('scored a consolidation move', {
      ...verdict,
      threshold: balancedThreshold,
      candidates: names,
    })
    if (policy !== 'Balanced' || !verdict.isApproved) continue
    const pool = caches.nodePools.get({ name: nodepool })
    const [only] = nodes
    const objects: readonly (KubeObject | undefined)[] =
      names.length === 1 ? [only?.node, only?.claim] : [pool]
    tell(
      deps,
      objects.filter((object) => object !== undefined),
      { reason: 'ConsolidationApproved', message: scoreText(verdict), values: [] },
    )
  }
}

function scoreText({ score, savingsFraction, disruptionFraction }: Verdict): string {
  const percent = (fraction: number) => `${(100 * fraction).toFixed(1)}%`
  return (
    `Score ${score.toFixed(2)} reaches the threshold ${balancedThreshold.toFixed(2)} (k=${balancedFactor}): ` +
    `saves ${percent(savingsFraction)} of the NodePool's price for ${percent(disruptionFraction)} of its disruption cost`
  )
}

/** Why a node stays, in words. */
export function refusalText(refusal: NodeRefusal, claimOf: ClaimOf): string {
  switch (refusal.kind) {
    case 'stranded':
      return strandedText(refusal.pods, claimOf)
    case 'severalNodes':
      return refusal.short === undefined
        ? `its pods would need ${refusal.count} nodes in its place`
        : `its pods would need ${refusal.count} nodes in its place now, as single ones that hold them are unavailable (${renderShortage(refusal.short)}); it is tried again by itself`
    case 'minValues':
      return `no cheaper set of instance types keeps minValues (${[...refusal.missing]
        .map(([key, found]) => `${key} has ${found}`)
        .join(', ')})`
    case 'noCheaper':
      return refusal.short === undefined
        ? "can't replace with a cheaper node"
        : `can't replace with a cheaper node now: cheaper ones are unavailable (${renderShortage(refusal.short)}); it is tried again by itself`
    case 'busyNodes':
      return 'its pods have room on nodes that are still under consolidateAfter; it is tried again by itself'
    case 'spotToSpotDisabled':
      return 'replacing a spot node with a cheaper spot node is disabled (feature gate SpotToSpotConsolidation)'
    case 'spotToSpotTypes':
      return `replacing a spot node with a spot node requires 15 cheaper instance types, had ${refusal.found}`
    case 'undecided':
      return 'there was no time to look for a place for its pods'
  }
}

/** Name of the NodeClaim of an instance. */
type ClaimOf = (instance: string) => string | undefined

/** Looks the claims of instances up, all of them when the first is asked for. */
export function claimNames({ state }: Dependencies): ClaimOf {
  let names: ReadonlyMap<string, string | undefined> | undefined
  return (instance) => {
    names ??= new Map(state.stateNodes().map(({ name, claim }) => [name, claim?.metadata.name]))
    return names.get(instance)
  }
}

/** Pods that would lose their place, the first few by name. */
export function strandedText(failures: RemovalResult['stranded'], claimOf: ClaimOf): string {
  const listed = failures.slice(0, listedPods).map(({ pod, reason }) => {
    const claim = reason.kind === 'uninitializedNode' ? claimOf(reason.node) : undefined
    const where = claim === undefined ? '' : ` (NodeClaim ${claim})`
    return `${keyOf(pod.metadata)} => ${renderPodReason(reason)}${where}`
  })
  const rest = failures.length - listed.length
  return `not all pods would schedule, ${listed.join('; ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`
}

function tell(
  { events }: Dependencies,
  objects: readonly KubeObject[],
  event: {
    readonly reason: string
    readonly message: string
    readonly values: readonly string[]
    readonly dedupeTtlMs?: number
  },
): void {
  const { reason, message, values, dedupeTtlMs } = event
  for (const object of objects)
    events.record({
      object,
      type: 'Normal',
      reason,
      message,
      dedupe: [object.metadata.uid ?? object.metadata.name, ...values],
      ...(dedupeTtlMs !== undefined && { dedupeTtlMs }),
    })
}
