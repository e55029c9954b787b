/** Which unhealthy nodes are repaired now, and how (wanted.md 2). */
import {
  conditionOf,
  counted,
  isConditionTrue,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  ownValue,
} from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { CloudProvider, RepairPolicy } from '@tenon/provider'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { Kubernetes } from '../../kubernetes.ts'
import { isHealthChange, mostUnhealthy } from '../../node/health.ts'
import { indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isNodeReady, isReporting, silentSinceMs } from '../../state/nodes/state-node.ts'
import { pauseSentence, readPause } from '../../state/pause.ts'
import { type MassFailure, massFailures } from './mass-failure.ts'
import { type Ailment, ailmentOf, ailmentText, isFlapping, rebootedAtMs } from './unhealthy-time.ts'

/** Of Nodes: `true`, or until when the node is not repaired. */
export const doNotRepairAnnotation = 'tenon.sh/do-not-repair'
/** Of NodeClaims: since when their node is being repaired by force, RFC 3339. */
export const repairStartedAnnotation = 'tenon.sh/repair-started'

/** NodePools with fewer nodes repair one at a time, however many are unhealthy. */
const smallPool = 5
/** A rebooted instance gets this long before the next node of its NodePool is repaired. */
const rebootMs = 10 * 60_000
/** An instance is rebooted once in this time. */
const rebootEveryMs = 60 * 60_000
/** Longest expected delay until the caches show a repair that has begun. */
const lagMs = 60_000

/**
 * What becomes of an unhealthy node now. `replace`: its replacement comes first, and its drain respects
 * PodDisruptionBudgets. `force`: it is deleted at once, as its pods cannot be stopped anyway.
 */
export type RepairVerdict = { readonly kind: 'replace' | 'force' | 'reboot' } | HeldRepair

export interface HeldRepair {
  readonly kind: 'held'
  /** `full`: the next one may be repaired in a moment. `brake`: many failed together. */
  readonly by: 'off' | 'veto' | 'full' | 'blocked' | 'brake'
  /** A clause without a full stop. */
  readonly because: string
  /** Unix milliseconds, if it ends by itself. */
  readonly untilMs?: number
  readonly failure?: MassFailure
}

interface Dependencies {
  readonly caches: Pick<Kubernetes['caches'], 'nodeClaims' | 'nodePools' | 'nodes'>
  readonly state: Pick<ClusterState, 'brake' | 'poolWishes'>
  readonly provider: Pick<CloudProvider, 'reboot' | 'repairPolicies'>
  readonly clock: Clock
}

export class RepairRules {
  readonly #deps: Dependencies
  /** Repairs that have begun and that the caches may not show yet: until when, by UID of the claim. */
  readonly #begun = new Map<string, number>()

  #census: Census | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
    deps.caches.nodes.onChange((change) => {
      if (isCensusChange(change)) this.#census = undefined
    })
  }

  ailmentOf(node: Node, claim: NodeClaim | undefined): Ailment | undefined {
    const { clock, provider } = this.#deps
    return ailmentOf(node, claim, provider.repairPolicies, clock.now())
  }

  /** Whether any node is unhealthy; cheap, as it changes rarely. */
  areAnyUnhealthy(): boolean {
    return (this.#counted().byPool.get('')?.unhealthy ?? 0) > 0
  }

  /** Whether the node has been unhealthy for longer than is tolerated, and is unhealthy now. */
  isDue(node: Node, claim: NodeClaim): boolean {
    const ailment = this.ailmentOf(node, claim)
    return ailment !== undefined && ailment.repairAtMs <= this.#deps.clock.now()
  }

  /** The same of a node whose replacement is ready; one that flaps may look well at this moment. */
  isStillDue(node: Node, claim: NodeClaim): boolean {
    const { clock, provider } = this.#deps
    return this.isDue(node, claim) || isFlapping(claim, provider.repairPolicies, clock.now())
  }

  /** @param pool of the claim; undefined if there is none. */
  verdictOn(node: Node, claim: NodeClaim, pool: NodePool | undefined): RepairVerdict {
    return this.stopOf(node, pool) ?? this.#full(claim, pool) ?? this.#means(node, claim, pool)
  }

  /** Why a repair does not go on, whether or not it has begun. */
  stopOf(node: Node, pool: NodePool | undefined): HeldRepair | undefined {
    return this.#refusalBy(node, pool) ?? this.#massFailure(node)
  }

  /** What users have said against a repair. */
  #refusalBy(node: Node, pool: NodePool | undefined): HeldRepair | undefined {
    if (pool !== undefined && this.#wishes(pool).repair === 'off')
      return {
        kind: 'held',
        by: 'off',
        because: `annotation tenon.sh/repair of NodePool ${pool.metadata.name} is "off"`,
      }
    const veto = readVeto(node, this.#deps.clock.now())
    if (veto?.kind !== 'holds') return undefined
    const { untilMs } = veto
    const end = untilMs === undefined ? '' : ` until ${rfc3339(untilMs)}`
    return {
      kind: 'held',
      by: 'veto',
      because: `the Node is annotated with ${doNotRepairAnnotation}${end}`,
      ...(untilMs !== undefined && { untilMs }),
    }
  }

  #massFailure(node: Node): HeldRepair | undefined {
    const zone = node.metadata.labels?.[labels.zone]
    const now = this.#deps.clock.now()
    const failure = this.#counted().failures.find(
      (each) => each.untilMs > now && (each.zone === undefined || each.zone === zone),
    )
    if (failure === undefined) return undefined
    const { nodes, of, untilMs } = failure
    const where = failure.zone === undefined ? 'the cluster' : `zone ${failure.zone}`
    const because = `${nodes} of ${of} nodes of ${where} turned unhealthy within ten minutes; none is repaired until they are well, or until ${rfc3339(untilMs)} if no more follow`
    return { kind: 'held', by: 'brake', because, untilMs, failure }
  }

  /** Whether as many nodes are being repaired, or unhealthy, as may be. */
  #full(claim: NodeClaim, pool: NodePool | undefined): RepairVerdict | undefined {
    const name = claim.metadata.labels?.[labels.nodePool] ?? ''
    const { total, unhealthy } = this.#counted().byPool.get(name) ?? noNodes
    const whose = name === '' ? 'the cluster' : `NodePool ${name}`
    const budget = pool === undefined ? undefined : this.#wishes(pool).repairBudget
    if (budget === undefined && (pool === undefined || total >= smallPool)) {
      if (unhealthy <= Math.ceil(mostUnhealthy * total)) return undefined
      const because = `more than ${100 * mostUnhealthy}% of the nodes of ${whose} are unhealthy (${unhealthy} of ${total})`
      return { kind: 'held', by: 'blocked', because }
    }
    const most =
      budget === undefined ? 1 : 'count' in budget ? budget.count : Math.ceil(budget.fraction * total)
    const others = this.#deps.caches.nodeClaims
      .byIndex(indexes.byNodePool, name)
      .filter((each) => each.metadata.uid !== claim.metadata.uid && this.#isInRepair(each)).length
    if (others < most) return undefined
    const why =
      budget === undefined ? `it has fewer than ${smallPool} nodes` : 'annotation tenon.sh/repair-budget'
    const because = `${most === 0 ? 'no node' : `only ${counted(most, 'node')}`} of ${whose} may be repaired at a time (${why})`
    return { kind: 'held', by: 'full', because }
  }

  /** Counted again after each change of a Node that matters. */
  #counted(): Census {
    const { caches, clock, provider } = this.#deps
    this.#census ??= censusOf(caches.nodes.list(), provider.repairPolicies, clock.now())
    return this.#census
  }

  #means(node: Node, claim: NodeClaim, pool: NodePool | undefined): RepairVerdict {
    const { clock, provider } = this.#deps
    const now = clock.now()
    const rebootedMs = rebootedAtMs(claim, now)
    const isRebootable = provider.reboot !== undefined && (claim.status?.providerID ?? '') !== ''
    const isFresh = rebootedMs !== undefined && now - rebootedMs < rebootEveryMs
    // Pods may be on their way to a replacement, and a reboot would make the node look well.
    const isGoing =
      claim.metadata.deletionTimestamp !== undefined || isConditionTrue(claim, 'DisruptionReason')
    if (pool !== undefined && this.#wishes(pool).repair === 'reboot' && isRebootable && !isFresh && !isGoing)
      return { kind: 'reboot' }
    const mayWait =
      pool !== undefined &&
      pool.spec.replicas === undefined &&
      isConditionTrue(claim, 'Initialized') &&
      isReporting(node)
    return { kind: mayWait ? 'replace' : 'force' }
  }

  /** What becomes of an unhealthy node, for people. */
  outlookOn(
    node: Node,
    claim: NodeClaim,
  ): { readonly message: string; readonly untilMs?: number } | undefined {
    const { caches, state } = this.#deps
    const ailment = this.ailmentOf(node, claim)
    if (ailment === undefined) return undefined
    const name = claim.metadata.labels?.[labels.nodePool] ?? ''
    const what = `It is unhealthy (${ailmentText(ailment)})`
    const pause = state.brake.holding(name, 'repair')
    const verdict =
      pause === undefined
        ? this.verdictOn(node, claim, caches.nodePools.get({ name }))
        : { kind: 'held' as const, because: pauseSentence(pause), untilMs: pause.untilMs }
    if (verdict.kind === 'held') {
      const { because, untilMs } = verdict
      const message = `${what} and is not repaired now: ${because}`
      return { message, ...(untilMs !== undefined && { untilMs }) }
    }
    const means = { replace: 'replaced', force: 'deleted by force', reboot: 'rebooted' }[verdict.kind]
    const { repairAtMs } = ailment
    if (repairAtMs <= this.#deps.clock.now()) return { message: `${what} and is to be ${means} now` }
    const message = `${what} and is ${means} unless it is well before ${rfc3339(repairAtMs)}`
    return { message, untilMs: repairAtMs }
  }

  /**
   * Counts the repair from now on. Synchronous, so that two do not take the same place.
   * @returns false if one of the same node has just begun.
   */
  begin({ metadata }: NodeClaim): boolean {
    const now = this.#deps.clock.monotonic()
    for (const [uid, untilMs] of this.#begun) if (untilMs <= now) this.#begun.delete(uid)
    const { uid = metadata.name } = metadata
    if (this.#begun.has(uid)) return false
    this.#begun.set(uid, now + lagMs)
    return true
  }

  /** The repair did not begin after all. */
  release({ metadata }: NodeClaim): void {
    this.#begun.delete(metadata.uid ?? metadata.name)
  }

  #isInRepair(claim: NodeClaim): boolean {
    const { metadata } = claim
    const { clock } = this.#deps
    if ((this.#begun.get(metadata.uid ?? metadata.name) ?? 0) > clock.monotonic()) return true
    const { reason } = conditionOf(claim, 'DisruptionReason') ?? {}
    if (isConditionTrue(claim, 'DisruptionReason') && reason === 'Unhealthy') return true
    // Without a deletion, a process ended between both writes, and nothing is under way.
    const isForced = ownValue(metadata.annotations, repairStartedAnnotation) !== undefined
    if (isForced && metadata.deletionTimestamp !== undefined) return true
    const rebootedMs = rebootedAtMs(claim, clock.now())
    return rebootedMs !== undefined && clock.now() - rebootedMs < rebootMs
  }

  #wishes(pool: NodePool) {
    return this.#deps.state.poolWishes(pool)
  }
}

interface Count {
  readonly total: number
  /** Nodes with a condition of a policy, tolerated or not. */
  readonly unhealthy: number
}

const noNodes: Count = { total: 0, unhealthy: 0 }

interface Census {
  readonly failures: readonly MassFailure[]
  /** By NodePool; the whole cluster under the empty name. */
  readonly byPool: ReadonlyMap<string, Count>
}

function censusOf(nodes: readonly Node[], policies: readonly RepairPolicy[], nowMs: number): Census {
  const byPool = new Map<string, Count>()
  const unhealthySince = (node: Node) => ailmentOf(node, undefined, policies, nowMs)?.sinceMs
  for (const node of nodes) {
    const isUnhealthy = unhealthySince(node) !== undefined
    for (const name of new Set(['', node.metadata.labels?.[labels.nodePool] ?? ''])) {
      const { total, unhealthy } = byPool.get(name) ?? noNodes
      byPool.set(name, { total: total + 1, unhealthy: unhealthy + (isUnhealthy ? 1 : 0) })
    }
  }
  // A node whose kubelet is silent is down, whether or not there is a policy for it.
  const downSince = (node: Node) =>
    unhealthySince(node) ?? (isNodeReady(node) ? undefined : silentSinceMs(node) || 0)
  return { failures: massFailures(nodes, downSince, nowMs), byPool }
}

/** Whether the census may have changed; heartbeats do not matter. */
function isCensusChange(change: Change<Node>): boolean {
  if (change.kind !== 'updated' || isHealthChange(change)) return true
  const { metadata: before } = change.old
  const { metadata: after } = change.object
  return (
    before.deletionTimestamp !== after.deletionTimestamp ||
    [labels.nodePool, labels.zone, labels.initialized].some(
      (key) => before.labels?.[key] !== after.labels?.[key],
    )
  )
}

type Veto =
  | { readonly kind: 'holds'; readonly untilMs?: number }
  | { readonly kind: 'unreadable'; readonly text: string }

/** What annotation `tenon.sh/do-not-repair` of a Node says; undefined if nothing, or if its time is over. */
export function readVeto({ metadata }: Node, nowMs: number): Veto | undefined {
  const text: unknown = ownValue(metadata.annotations, doNotRepairAnnotation)
  if (text === undefined) return undefined
  const shown = String(text).slice(0, 60)
  // JSON is for pauses.
  if (typeof text !== 'string' || text.trim().startsWith('{')) return { kind: 'unreadable', text: shown }
  const reading = readPause(text)
  if (reading.kind === 'none') return undefined
  if (reading.kind === 'malformed') return { kind: 'unreadable', text: shown }
  const { untilMs } = reading.value
  if (untilMs === undefined) return { kind: 'holds' }
  return untilMs > nowMs ? { kind: 'holds', untilMs } : undefined
}
