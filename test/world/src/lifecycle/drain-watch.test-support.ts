/** Watches a drain at every change of a pod or PDB, and at every request that ends a pod. */
import { annotations, kinds, matchesSelector, type Pod, type PodDisruptionBudget } from '@tenon/api'
import type { Transport } from '@tenon/runtime'
import type { World } from '../world.ts'

/** The operator asked for the end of a pod. */
interface EndRequest {
  readonly kind: 'evict' | 'delete'
  readonly pod: string
  readonly uid: string
  readonly atMs: number
  readonly status: number
}

const evictionPath = /\/namespaces\/([^/]+)\/pods\/([^/?]+)\/eviction/
const podPath = /\/namespaces\/([^/]+)\/pods\/([^/?]+)(\?|$)/

/** What went wrong, as sentences; empty when nothing did. */
export class DrainWatch {
  readonly complaints: string[] = []
  readonly requests: EndRequest[] = []
  #world: World | undefined
  #deadlineMs = Number.POSITIVE_INFINITY
  /** UIDs of pods that were deleted by force: their absence is not the PDB's. */
  readonly #forced = new Set<string>()
  readonly #pods = new Map<string, Pod>()
  readonly #budgets = new Map<string, PodDisruptionBudget>()

  /** Goes between the operator and the API server. */
  readonly apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const evicted = request.method === 'POST' ? evictionPath.exec(request.path) : null
      const deleted = request.method === 'DELETE' ? podPath.exec(request.path) : null
      const [, namespace = '', name = ''] = evicted ?? deleted ?? []
      if (evicted === null && deleted === null) return await inner.send(request, signal)
      const pod = `${namespace}/${name}`
      const kind = evicted === null ? 'delete' : 'evict'
      const before = this.#pods.get(pod)
      const atMs = this.#world?.clock.now() ?? 0
      this.#judge(kind, pod, atMs)
      const answer = await inner.send(request, signal)
      this.requests.push({ kind, pod, uid: before?.metadata.uid ?? '', atMs, status: answer.status })
      return answer
    },
  })

  /** Starts looking. @param deadlineMs of the nodes that are drained. */
  follow(world: World, deadlineMs: number): void {
    this.#world = world
    this.#deadlineMs = deadlineMs
    const { local } = world.cluster.server
    const changed = (now: Pod) => {
      const name = keyOf(now)
      const before = this.#pods.get(name)
      this.#pods.set(name, now)
      if (before !== undefined && isHealthy(before) && !isHealthy(now)) this.#lost(now)
    }
    const budget = (now: PodDisruptionBudget) => {
      this.#budgets.set(now.metadata.name, now)
      const { disruptionsAllowed = 0 } = now.status ?? {}
      if (disruptionsAllowed < 0) this.complaints.push(`${now.metadata.name}: ${disruptionsAllowed} allowed`)
    }
    for (const each of world.pods()) this.#pods.set(keyOf(each), each)
    for (const each of local.list(kinds.podDisruptionBudget)) this.#budgets.set(each.metadata.name, each)
    local.subscribe(kinds.pod, {
      added: changed,
      updated: changed,
      deleted: (gone) => {
        const before = this.#pods.get(keyOf(gone))
        this.#pods.delete(keyOf(gone))
        if (before !== undefined && isHealthy(before)) this.#lost(before)
      },
    })
    local.subscribe(kinds.podDisruptionBudget, { added: budget, updated: budget })
  }

  /** Evictions that were asked for, by the status they were answered with. */
  counts(): Readonly<Record<number, number>> {
    const counts: Record<number, number> = {}
    for (const { kind, status } of this.requests) {
      if (kind === 'evict') counts[status] = (counts[status] ?? 0) + 1
    }
    return counts
  }

  /** Pods that were asked to go sooner after a refusal than their back-off allows. */
  haste(): readonly string[] {
    const refusals = new Map<string, { count: number; atMs: number }>()
    const hasty: string[] = []
    for (const { kind, pod, uid, atMs, status } of this.requests) {
      if (kind !== 'evict') continue
      const last = refusals.get(uid)
      const pauseMs = last === undefined ? 0 : Math.min(10_000, 100 * 2 ** (last.count - 1))
      if (last !== undefined && atMs - last.atMs < pauseMs) hasty.push(`${pod} after ${atMs - last.atMs} ms`)
      if (status >= 400) refusals.set(uid, { count: (last?.count ?? 0) + 1, atMs })
    }
    return hasty
  }

  #judge(kind: 'evict' | 'delete', name: string, atMs: number): void {
    const pod = this.#pods.get(name)
    if (pod === undefined) return
    const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000
    const late = atMs > this.#deadlineMs - graceMs
    if (kind === 'delete') {
      this.#forced.add(pod.metadata.uid ?? '')
      if (!late && pod.metadata.deletionTimestamp === undefined)
        this.complaints.push(`${name} was deleted by force ${this.#deadlineMs - graceMs - atMs} ms too early`)
      return
    }
    if (late) this.complaints.push(`${name} was evicted where it had to be deleted`)
    const value = pod.metadata.annotations?.[annotations.doNotDisrupt]
    if (value === 'true') this.complaints.push(`${name} was evicted although it must not be disrupted`)
    const minutes = /^(\d+)m$/.exec(value ?? '')?.[1]
    const untilMs = Date.parse(pod.status?.startTime ?? '') + Number(minutes ?? 0) * 60_000
    if (minutes !== undefined && atMs < untilMs)
      this.complaints.push(`${name} was evicted ${untilMs - atMs} ms before its time`)
  }

  /** A healthy pod has gone, or is going: its PDBs must still have as many as they need. */
  #lost(pod: Pod): void {
    const all = [...this.#pods.values()]
    for (const { metadata, spec, status } of this.#budgets.values()) {
      if (!matchesSelector(spec.selector, pod.metadata.labels)) continue
      const desired = status?.desiredHealthy ?? 0
      const healthy = all.filter(
        (each) => matchesSelector(spec.selector, each.metadata.labels) && isHealthy(each),
      )
      if (healthy.length >= desired || this.#forced.has(pod.metadata.uid ?? '')) continue
      this.complaints.push(`${metadata.name}: ${healthy.length} of ${desired} healthy without ${keyOf(pod)}`)
    }
  }
}

const keyOf = ({ metadata }: Pod) => `${metadata.namespace}/${metadata.name}`

function isHealthy({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
  )
}
