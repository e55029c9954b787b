/** Observes NodeClaims, Nodes and pods independently of the operator, and records their history. */
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

/** The history of a NodeClaim, in monotonic milliseconds. */
export interface ClaimLife {
  readonly pool: string
  /** IDs of the groups that it was launched for. */
  readonly groups: readonly string[]
  readonly createdMs: number
  /** Whether it was being deleted. */
  isEnding: boolean
  launchedMs?: number
  goneMs?: number
}

/** The history of a Node. */
export interface NodeLife {
  readonly pool: string
  readyMs?: number
  /** When it first accepted pods. */
  openMs?: number
}

export class Lookout {
  readonly claims = new Map<string, ClaimLife>()
  readonly nodes = new Map<string, NodeLife>()
  readonly pods: Cache<Pod>
  /** Names of all pods of groups that ever existed. */
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

  /** All NodeClaims of a NodePool that ever existed. */
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
