/** Why a node or a NodeClaim still exists, what will happen to it, and why it was launched (ask.md 2). */
import {
  accumulate,
  conditionOf,
  formatResources,
  isConditionTrue,
  labels,
  type NodeClaim,
  type NodePool,
  parseResources,
  type Pod,
  podRequests,
  type ResourceList,
  type Resources,
} from '@tenon/api'
import type {
  JournalEntry,
  NodeAnswer,
  NodeDecision,
  NodeObstacle,
  Saving,
  StuckReason,
} from '@tenon/operator'
import { isDaemonPod } from '@tenon/operator/objects'
import type { Study } from '../study/study.ts'
import { type AsOf, asOf } from './as-of.ts'
import { type ClaimPhase, claimPhase } from './claim-phase.ts'
import { driftedFields } from './drifted-fields.ts'

interface NodeLoad {
  readonly pods: number
  /** Of those, the pods of DaemonSets. */
  readonly daemonPods: number
  readonly requests: ResourceList
  readonly allocatable: ResourceList
}

export interface NodeExplanation {
  readonly node?: string
  readonly nodeClaim?: string
  readonly nodePool?: string
  readonly asOf: AsOf
  readonly summary: string
  /** `unmanaged`: it has no NodeClaim. `gone`: only the journal knows it. */
  readonly case: 'unmanaged' | 'starting' | 'running' | 'leaving' | 'gone'
  readonly instanceType?: string
  readonly zone?: string
  readonly capacityType?: string
  /** Absent if unknown. */
  readonly pricePerHour?: number
  readonly currency?: string
  /** What keeps it, in order of precedence; the first one applies now. */
  readonly obstacles: readonly NodeObstacle[]
  /** Set if only PDBs hold it that can never allow an eviction, whatever budgets of its NodePool say. */
  readonly stuck?: StuckReason
  /** When the first obstacle was found, RFC 3339. */
  readonly at?: string
  readonly saving?: Saving
  /** The reason of the drift, and the fields of the NodePool that differ. */
  readonly drift?: { readonly reason: string; readonly fields: readonly string[] }
  readonly phase?: ClaimPhase
  readonly holds?: NodeLoad
  readonly madeBy?: JournalEntry
  /** Its journal entries, oldest first. */
  readonly history: readonly JournalEntry[]
}

/** Causes that do not keep a node, or say themselves what they do. */
const unopposed: ReadonlySet<NodeDecision['cause']> = new Set(['possible', 'unknown', 'command', 'repair'])

/** What a name refers to: a Node may have the name of another node's NodeClaim. */
export type NodeNameKind = 'node' | 'nodeClaim'

/** @returns undefined if neither the objects nor the journal know it. */
export async function explainNode(
  study: Study,
  kind: NodeNameKind,
  name: string,
  signal: AbortSignal,
): Promise<NodeExplanation | undefined> {
  const history = study.snapshot.journal.filter(({ nodeClaims, nodes, replacements = [] }) =>
    kind === 'node' ? nodes.includes(name) : [...nodeClaims, ...replacements].includes(name),
  )
  const { caches, state } = study.operator
  const node = kind === 'node' ? caches.nodes.get({ name }) : undefined
  const claim = node === undefined ? undefined : state.claimOf(node)
  const named = kind === 'node' ? claim : caches.nodeClaims.get({ name })
  const answer =
    named === undefined ? undefined : await study.operator.questions().node(named.metadata.name, signal)
  if (answer !== undefined) return managed(study, answer)
  if (named !== undefined) return starting(study, named)
  if (node !== undefined)
    return {
      node: name,
      asOf: asOf(study.snapshot),
      case: 'unmanaged',
      summary: 'It has no NodeClaim: Tenon neither launched it nor removes it',
      obstacles: [],
      holds: loadOf(study, name),
      history,
    }
  return history.length === 0 ? undefined : gone(study, name, history)
}

function managed(study: Study, answer: NodeAnswer): NodeExplanation {
  const { stateNode, pricePerHour, saving } = answer
  const { claim, node } = stateNode
  const decision = decisionOn(study, answer)
  const { cause, message, until, others = [], stuck } = decision
  return {
    ...(node && { node: node.metadata.name }),
    nodeClaim: decision.nodeClaim,
    nodePool: decision.nodePool,
    asOf: asOf(study.snapshot),
    case: stateNode.isMarkedForDeletion ? 'leaving' : 'running',
    summary: summaryOf(decision),
    ...placeOf((node ?? claim)?.metadata.labels ?? {}),
    ...(pricePerHour !== undefined && { pricePerHour }),
    ...currencyOf(study),
    obstacles: [{ cause, message, ...(until !== undefined && { until }) }, ...others],
    ...(stuck && { stuck }),
    at: decision.at,
    ...(saving && { saving }),
    ...(claim && stateOf(study, claim)),
    ...(node && { holds: loadOf(study, node.metadata.name) }),
    ...journaled(study, decision.nodeClaim, node?.metadata.name),
  }
}

/** The controller knows more than its objects show; what it has not evaluated is evaluated here. */
function decisionOn({ snapshot }: Study, { decision }: NodeAnswer): NodeDecision {
  const known = snapshot.nodeDecisions.find(({ nodeClaim }) => nodeClaim === decision.nodeClaim)
  return known === undefined || known.cause === 'unknown' ? decision : known
}

/** Its progress, and whether it has drifted from its NodePool. */
function stateOf(study: Study, claim: NodeClaim): Partial<Pick<NodeExplanation, 'case' | 'drift' | 'phase'>> {
  const phase = claimPhase(study, claim)
  const drift = driftOf(study, claim)
  return { ...(phase && { case: 'starting', phase }), ...(drift && { drift }) }
}

function summaryOf({ cause, message }: NodeDecision): string {
  if (cause === 'command') return `It goes: ${message}`
  if (unopposed.has(cause)) return message
  return `It stays: ${message}`
}

function starting(study: Study, claim: NodeClaim): NodeExplanation {
  const phase = claimPhase(study, claim)
  const { name } = claim.metadata
  const isLeaving = claim.metadata.deletionTimestamp !== undefined
  return {
    nodeClaim: name,
    nodePool: claim.metadata.labels?.[labels.nodePool] ?? '',
    asOf: asOf(study.snapshot),
    case: isLeaving ? 'leaving' : 'starting',
    summary: isLeaving
      ? 'It is being deleted'
      : phase === undefined
        ? 'It has no instance'
        : `It is not ${phase.waitsFor} yet`,
    ...placeOf(claim.metadata.labels ?? {}),
    ...currencyOf(study),
    obstacles: [],
    ...(phase && { phase }),
    ...journaled(study, name, claim.status?.nodeName),
  }
}

function gone(study: Study, name: string, known: readonly JournalEntry[]): NodeExplanation {
  // Only entries about a single node say which NodeClaim it had.
  const own = known.findLast(({ nodeClaims, nodes }) => nodeClaims.length === 1 && nodes.length <= 1)
  const nodeClaim = own?.nodeClaims[0]
  const history = wholeHistory(study, [name, nodeClaim, own?.nodes[0]])
  const node = history.findLast(({ nodeClaims, nodes }) => nodes.length === 1 && nodeClaims[0] === nodeClaim)
    ?.nodes[0]
  const nodePool = history.find((each) => each.nodePool !== undefined)?.nodePool
  const madeBy = history.find(({ kind, nodeClaims }) => kind === 'launch' && nodeClaims[0] === nodeClaim)
  const why = whyGone(history, nodeClaim ?? name)
  return {
    ...(node !== undefined && { node }),
    ...(nodeClaim !== undefined && { nodeClaim }),
    ...(nodePool !== undefined && { nodePool }),
    asOf: asOf(study.snapshot),
    case: 'gone',
    summary: why === undefined ? 'It is gone; the journal does not tell why' : goneText(why),
    ...currencyOf(study),
    obstacles: [],
    ...(madeBy && { madeBy }),
    history,
  }
}

/** Why it was removed, what replaced it, and what that was expected to save. */
function goneText({
  at,
  currency,
  message,
  nodes,
  pricePerHour,
  reason,
  replacements = [],
}: JournalEntry): string {
  const { before, after } = pricePerHour ?? {}
  const place = nodes.length > 1 ? `the place of ${nodes.length} nodes` : 'its place'
  const came = replacements.length === 0 ? '' : `; NodeClaim ${replacements.join(', ')} came in ${place}`
  const saves =
    before === undefined || after === undefined || after > before
      ? ''
      : `, which saves ${(before - after).toFixed(4)}${currency === undefined ? '' : ` ${currency}`} per hour`
  return `It is gone: ${reason} at ${at} (${message})${came}${came === '' ? '' : saves}`
}

/** A command that replaced the node says more than the deletion that followed. */
function whyGone(history: readonly JournalEntry[], nodeClaim: string): JournalEntry | undefined {
  const own = history.filter(({ nodeClaims, nodes }) => [...nodeClaims, ...nodes].includes(nodeClaim))
  return (
    own.findLast(({ kind }) => kind === 'move') ??
    own.findLast(({ kind }) => kind === 'removal') ??
    own.findLast(({ kind }) => kind === 'removed')
  )
}

function journaled(
  study: Study,
  claim: string,
  node: string | undefined,
): Pick<NodeExplanation, 'history' | 'madeBy'> {
  const history = wholeHistory(study, [claim, node])
  const madeBy = history.find(({ kind, nodeClaims }) => kind === 'launch' && nodeClaims.includes(claim))
  return { ...(madeBy && { madeBy }), history }
}

function wholeHistory({ snapshot }: Study, names: readonly (string | undefined)[]): readonly JournalEntry[] {
  const asked = new Set(names.filter((name) => name !== undefined && name !== ''))
  return snapshot.journal.filter(({ nodeClaims, nodes, replacements = [] }) =>
    [...nodeClaims, ...nodes, ...replacements].some((name) => asked.has(name)),
  )
}

function requestsOf(pods: readonly Pod[]): Resources {
  const requests: Record<string, number> = {}
  for (const { spec, status } of pods) accumulate(requests, podRequests(spec, status))
  return requests
}

function loadOf({ operator }: Study, name: string): NodeLoad {
  const pods = operator.state.podsOn(name)
  return {
    pods: pods.length,
    daemonPods: pods.filter(isDaemonPod).length,
    requests: formatResources(requestsOf(pods)),
    allocatable: formatResources(parseResources(operator.caches.nodes.get({ name })?.status?.allocatable)),
  }
}

function driftOf({ operator }: Study, claim: NodeClaim): NodeExplanation['drift'] {
  if (!isConditionTrue(claim, 'Drifted')) return undefined
  const { reason = '' } = conditionOf(claim, 'Drifted') ?? {}
  const pool: NodePool | undefined = operator.caches.nodePools.get({
    name: claim.metadata.labels?.[labels.nodePool] ?? '',
  })
  return { reason, fields: pool === undefined ? [] : driftedFields(claim, pool) }
}

function placeOf(
  tags: Readonly<Record<string, string>>,
): Pick<NodeExplanation, 'instanceType' | 'zone' | 'capacityType'> {
  const {
    [labels.instanceType]: instanceType,
    [labels.zone]: zone,
    [labels.capacityType]: capacityType,
  } = tags
  return {
    ...(instanceType !== undefined && { instanceType }),
    ...(zone !== undefined && { zone }),
    ...(capacityType !== undefined && { capacityType }),
  }
}

function currencyOf({ snapshot }: Study): Pick<NodeExplanation, 'currency'> {
  const { priceUnit } = snapshot.cloud
  return priceUnit === undefined ? {} : { currency: priceUnit }
}
