/** Follows NodeClaims, Nodes and pods beside the operator, and keeps what they were like at every moment. */
import {
  isConditionTrue,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type Pod,
} from '@tenon/api'
import { type Cache, createCacheRegistry, type WatchingKubeClient } from '@tenon/kube'
import { type Logger, SeededRandom, type SystemClock } from '@tenon/runtime'

/** What was seen of a NodeClaim. Times are of the monotonic clock, in milliseconds. */
export interface ClaimLife {
  readonly pool: string
  /** Ids of the groups that it was launched for, at first. */
  readonly groups: readonly string[]
  readonly createdMs: number
  /** Whether it was being deleted. */
  isEnding: boolean
  launchedMs?: number
  goneMs?: number
}

/** What was seen of a Node. */
export interface NodeLife {
  readonly pool: string
  readyMs?: number
  /** When pods could come. */
  openMs?: number
}

export class Lookout {
  readonly claims = new Map<string, ClaimLife>()
  readonly nodes = new Map<string, NodeLife>()
  readonly pods: Cache<Pod>
  /** Names of all pods of groups that were there at any time. */
  readonly members = new Set<string>()
  /** Called after each change of a NodeClaim or pod. */
  readonly watchers = new Set<() => void>()
  readonly #clock: SystemClock
  readonly #stop = new AbortController()

  private constructor(client: WatchingKubeClient, clock: SystemClock, logger: Logger) {
    this.#clock = clock
    const random = new SeededRandom('lookout')
    const registry = createCacheRegistry({ client, clock, logger, random })
    const claims = registry.cache(karpenterKinds.nodeClaim)
    const nodes = registry.cache(kinds.node)
    this.pods = registry.cache(kinds.pod)
    claims.onChange(({ kind, object }) => {
      this.#seeClaim(object, kind === 'deleted')
      for (const watcher of this.watchers) watcher()
    })
    nodes.onChange(({ object }) => {
      this.#seeNode(object)
    })
    this.pods.onChange(({ object: { metadata, spec } }) => {
      if (spec.schedulingGroup !== undefined) this.members.add(metadata.name)
      for (const watcher of this.watchers) watcher()
    })
    registry.start(this.#stop.signal)
  }

  static start(client: WatchingKubeClient, clock: SystemClock, logger: Logger): Lookout {
    return new Lookout(client, clock, logger)
  }

  stop(): void {
    this.#stop.abort()
  }

  /** The NodeClaims of a NodePool that were there at any time. */
  claimsOf(pool: string): readonly ClaimLife[] {
    return [...this.claims.values()].filter((claim) => claim.pool === pool)
  }

  nodesOf(pool: string): readonly NodeLife[] {
    return [...this.nodes.values()].filter((node) => node.pool === pool)
  }

  /** Pods of a group that have a node. */
  boundOf(group: string): readonly Pod[] {
    return this.pods
      .list()
      .filter(({ spec }) => spec.schedulingGroup?.podGroupName === group && (spec.nodeName ?? '') !== '')
  }

  #seeClaim(claim: NodeClaim, isGone: boolean): void {
    const { name, annotations, deletionTimestamp } = claim.metadata
    const now = this.#clock.monotonic()
    const life = this.claims.get(name) ?? {
      pool: claim.metadata.labels?.[labels.nodePool] ?? '',
      groups: groupsIn(annotations?.['tenon.sh/group']),
      createdMs: now,
      isEnding: false,
    }
    this.claims.set(name, life)
    if (deletionTimestamp !== undefined) life.isEnding = true
    if (isConditionTrue(claim, 'Launched')) life.launchedMs ??= now
    if (isGone) life.goneMs ??= now
  }

  #seeNode(node: Node): void {
    const { metadata, spec, status } = node
    const now = this.#clock.monotonic()
    const life = this.nodes.get(metadata.name) ?? { pool: metadata.labels?.[labels.nodePool] ?? '' }
    this.nodes.set(metadata.name, life)
    const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True')
    if (isReady === true) life.readyMs ??= now
    const isClosed = (spec?.taints ?? []).some(({ effect }) => effect !== 'PreferNoSchedule')
    if (isReady === true && !isClosed) life.openMs ??= now
  }
}

/** `NAMESPACE/NAME` of each group that the annotation names. */
function groupsIn(annotation: string | undefined): readonly string[] {
  return (annotation ?? '').split(',').flatMap((each) => /\/([^/@]+)@/.exec(each)?.[1] ?? [])
}
