/** How much the node groups grow, compared with what the pods that wait could need. */
import { conditionOf, kinds, parseResource, podRequests, type Pod } from '@tenon/api'
import { deploymentOf } from '../../simulation/cloud/hub-objects.ts'
import type { HubWorld } from './hub-world.ts'

const minute = 60_000
/** A decision may be so much older than its write. */
const pastMs = 5 * minute
/** Pods that find a node sooner need none. */
const schedulingMs = 5_000
/** Before that a Machine may still become a node. */
export const provisionMs = 15 * minute

interface Amount {
  readonly cpu: number
  readonly memory: number
}

interface Waiting extends Amount {
  readonly startMs: number
  /** When it got a node, or was deleted. */
  endMs: number | undefined
}

/** Follows the pods without a node. */
export class Demand {
  readonly #world: HubWorld
  readonly #waiting = new Map<string, Waiting>()
  /** Replicas that people added, for a while. */
  readonly #added: { readonly name: string; readonly atMs: number }[] = []

  constructor(world: HubWorld) {
    this.#world = world
    const look = (pod: Pod) => {
      const uid = pod.metadata.uid ?? ''
      const known = this.#waiting.get(uid)
      if (pod.spec.nodeName !== undefined) this.#end(uid)
      else if (known === undefined) {
        const { cpu = 0, memory = 0 } = podRequests(pod.spec)
        this.#waiting.set(uid, { cpu, memory, startMs: world.clock.monotonic(), endMs: undefined })
      }
    }
    world.cluster.server.local.subscribe(kinds.pod, {
      added: look,
      updated: look,
      deleted: ({ metadata }) => this.#end(metadata.uid ?? ''),
    })
  }

  /** A person adds a replica, which the autoscaler may not have seen yet. */
  added(name: string): void {
    this.#added.push({ name, atMs: this.#world.clock.monotonic() })
  }

  /** @returns why more nodes are a waste: a clause; undefined if pods may need them. */
  waste(): string | undefined {
    const [nodes, pods] = [this.#upcoming(), this.#needed()]
    // Whoever decides may place pods less well.
    const free = nodes.map(({ cpu, memory }) => ({ cpu: 0.8 * cpu, memory: 0.8 * memory }))
    for (const pod of pods.toSorted((a, b) => b.cpu - a.cpu)) {
      const node = free.find(({ cpu, memory }) => cpu >= pod.cpu && memory >= pod.memory)
      if (node === undefined) return undefined
      node.cpu -= pod.cpu
      node.memory -= pod.memory
    }
    return `${nodes.length} nodes are on their way, with room for all ${pods.length} pods that wait`
  }

  #end(uid: string): void {
    const waiting = this.#waiting.get(uid)
    if (waiting === undefined) return
    waiting.endMs ??= this.#world.clock.monotonic()
    if (waiting.endMs - waiting.startMs < schedulingMs) this.#waiting.delete(uid)
  }

  #needed(): readonly Amount[] {
    const sinceMs = this.#world.clock.monotonic() - pastMs
    for (const [uid, { endMs }] of this.#waiting)
      if (endMs !== undefined && endMs < sinceMs) this.#waiting.delete(uid)
    return [...this.#waiting.values()]
  }

  /** Nodes to come of all groups, but those that people asked for. */
  #upcoming(): readonly Amount[] {
    return this.#world.groups.flatMap(({ bounds, cpu, memory, name }) => {
      if (bounds === undefined) return []
      const replicas = this.#world.deployment(name)?.spec?.replicas ?? 0
      const count = Math.max(0, replicas - this.#settled(name) - this.#addedTo(name))
      const size = { cpu: cpu * 1000, memory: parseResource('memory', memory) }
      return Array.from({ length: count }, () => size)
    })
  }

  /** Machines that are nodes, or will never be. */
  #settled(name: string): number {
    const nodes = new Set(this.#world.nodes().map(({ metadata }) => metadata.name))
    const nowMs = this.#world.clock.now()
    return this.#world.machines().filter((machine) => {
      const { metadata, status } = machine
      if (deploymentOf(machine) !== name) return false
      if (metadata.deletionTimestamp !== undefined) return nodes.has(status?.nodeRef?.name ?? '')
      const ageMs = nowMs - Date.parse(metadata.creationTimestamp ?? '')
      const isRemediated = conditionOf(machine, 'OwnerRemediated')?.status === 'False'
      return (
        status?.nodeRef !== undefined || status?.phase === 'Failed' || isRemediated || ageMs >= provisionMs
      )
    }).length
  }

  #addedTo(name: string): number {
    const sinceMs = this.#world.clock.monotonic() - provisionMs
    return this.#added.filter((each) => each.name === name && each.atMs >= sinceMs).length
  }
}
