/** What controllers ask for, checked as soon as the servers have acted on it. */
import {
  annotations,
  disruptedTaint,
  karpenterKinds,
  kinds,
  labels,
  parseDuration,
  type Pod,
  sameTaint,
  terminationFinalizer,
} from '@tenon/api'
import type { HttpRequest, Transport } from '@tenon/runtime'
import type { World } from '../world.ts'

const podPath = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/?]+)(\/eviction)?(?:\?|$)/
const critical: ReadonlySet<string> = new Set(['system-cluster-critical', 'system-node-critical'])

/** Keeps watch over a world; what must not happen is stored. */
export class Ledger {
  readonly violations: string[] = []
  /** Names of the pods that were told to go, in order. */
  readonly evicted: string[] = []
  readonly #refused = new WeakSet<HttpRequest>()
  #world: World | undefined

  open(world: World): void {
    this.#world = world
  }

  /** Whether the API server refused a request of this run. */
  wasRefused(request: HttpRequest): boolean {
    return this.#refused.has(request)
  }

  watchKubernetes(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        if (request.method === 'GET') return await inner.send(request, signal)
        const judge = this.#judgeOf(request)
        const response = await inner.send(request, signal)
        if (response.status < 300) judge()
        else this.#refused.add(request)
        return response
      },
    }
  }

  watchCloud(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        const response = await inner.send(request, signal)
        if (request.method === 'POST' && request.path.endsWith('/instance')) this.#judgeInstances()
        return response
      },
    }
  }

  /** Remembers how things were, and answers what to look at once the server has acted. */
  #judgeOf(request: HttpRequest): () => void {
    if (request.method === 'POST' && /^\/api\/v1\/nodes$|\/nodegroups$/.test(request.path)) {
      return () => {
        this.#judgeInstances()
      }
    }
    const [, namespace, name, eviction] = podPath.exec(request.path) ?? []
    const pod =
      name === undefined ? undefined : this.#world?.cluster.server.local.get(kinds.pod, namespace, name)
    if (pod === undefined) return () => undefined
    if (request.method === 'DELETE') {
      return () => {
        this.#judgeForce(pod)
      }
    }
    return eviction === undefined
      ? () => undefined
      : () => {
          this.#judgeEviction(pod)
        }
  }

  #judgeInstances(): void {
    for (const [claimName, instances] of this.#world?.instancesByClaim() ?? []) {
      const claim = this.#world?.claims().find(({ metadata }) => metadata.name === claimName)
      if (instances.length > 1) this.violations.push(`claim ${claimName} has ${instances.length} instances`)
      if (claim?.metadata.finalizers?.includes(terminationFinalizer) !== true)
        this.violations.push(`an instance was made for ${claimName}, which no finalizer holds`)
    }
  }

  #judgeEviction(pod: Pod): void {
    const { name } = pod.metadata
    this.#judgeOnce(pod)
    this.evicted.push(name)
    const protectedUntil = this.#protectedUntil(pod)
    if (protectedUntil > this.#now) this.violations.push(`pod ${name} was evicted although it is protected`)
    for (const before of this.#pods())
      if (isAhead(before, pod)) this.violations.push(`pod ${name} was evicted before ${before.metadata.name}`)
    const budgets = this.#world?.cluster.server.local.list(kinds.podDisruptionBudget) ?? []
    for (const { metadata, spec } of budgets) {
      const least = spec.minAvailable
      if (typeof least !== 'number' || !matches(spec.selector?.matchLabels, pod)) continue
      const healthy = this.#pods().filter(
        (each) => matches(spec.selector?.matchLabels, each) && isHealthy(each),
      )
      if (healthy.length < least) this.violations.push(`evicting ${name} broke PDB ${metadata.name}`)
    }
  }

  /** A pod may be deleted once no more than its grace period is left until the deadline. */
  #judgeForce(pod: Pod): void {
    const { name } = pod.metadata
    this.#judgeOnce(pod)
    this.evicted.push(`${name} by force`)
    const graceMs = (pod.spec?.terminationGracePeriodSeconds ?? 0) * 1000
    const claim = this.#world
      ?.claims()
      .find(({ status }) => status?.nodeName !== undefined && status.nodeName === pod.spec?.nodeName)
    const deadline = Date.parse(claim?.metadata.annotations?.[annotations.terminationTimestamp] ?? '')
    // Without a deadline this comparison is with NaN, and the pod may never be deleted.
    if (!(this.#now > deadline - graceMs)) this.violations.push(`pod ${name} was deleted before its deadline`)
  }

  #judgeOnce(pod: Pod): void {
    const { name, deletionTimestamp } = pod.metadata
    if (deletionTimestamp !== undefined) this.violations.push(`pod ${name} was told to go twice`)
    const node = this.#world?.cluster.server.local.get(kinds.node, undefined, pod.spec?.nodeName ?? '')
    if (node?.spec?.taints?.some((taint) => sameTaint(taint, disruptedTaint)) !== true)
      this.violations.push(`pod ${name} was told to go from a node without the disrupted taint`)
  }

  #protectedUntil(pod: Pod): number {
    const value = pod.metadata.annotations?.[annotations.doNotDisrupt]
    if (value === undefined) return 0
    if (value === 'true') return Number.POSITIVE_INFINITY
    return Date.parse(pod.status?.startTime ?? '') + (parseDuration(value) ?? 0)
  }

  get #now(): number {
    return this.#world?.clock.now() ?? 0
  }

  #pods(): readonly Pod[] {
    return this.#world?.pods() ?? []
  }
}

/** Claims, Nodes and instances that do not belong together. */
export function orphans(world: World): readonly string[] {
  const claims = world.cluster.server.local.list(karpenterKinds.nodeClaim)
  const found: string[] = []
  for (const [claimName, instances] of world.instancesByClaim()) {
    const claim = claims.find(({ metadata }) => metadata.name === claimName)
    if (claim?.status?.providerID === undefined) found.push(`instance ${instances.join()} of ${claimName}`)
  }
  const managed = world.nodes().filter(({ metadata }) => metadata.labels?.[labels.nodePool] !== undefined)
  for (const { metadata, spec } of managed)
    if (!claims.some(({ status }) => status?.providerID === spec?.providerID))
      found.push(`node ${metadata.name}`)
  return found
}

/** Whether a pod had to be gone before another one of its node may go (lifecycle.md 4.1). */
function isAhead(pod: Pod, other: Pod): boolean {
  return (
    pod.metadata.uid !== other.metadata.uid &&
    pod.spec?.nodeName === other.spec?.nodeName &&
    pod.status?.phase === 'Running' &&
    tierOf(pod) < tierOf(other)
  )
}

function tierOf({ spec, metadata }: Pod): number {
  const isDaemon = metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') === true
  return (critical.has(spec?.priorityClassName ?? '') ? 2 : 0) + (isDaemon ? 1 : 0)
}

function matches(wanted: Readonly<Record<string, string>> | undefined, { metadata }: Pod): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) => metadata.labels?.[key] === value)
}

function isHealthy({ metadata, status }: Pod): boolean {
  const isReady = status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True')
  return metadata.deletionTimestamp === undefined && isReady === true
}
