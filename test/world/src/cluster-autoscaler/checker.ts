/** Checks on the servers' side what users of node groups rely on (must-hold 6 of the mode). */
import type { Node, Pod } from '@tenon/api'
import { toBeDeletedTaint } from '@tenon/cluster-autoscaler'
import type { HttpRequest, Transport } from '@tenon/runtime'
import type { AutoscalerWorld, WorldPool } from './autoscaler-world.ts'

export interface Violation {
  readonly invariant:
    | 'neverBelowMinimum'
    | 'neverAboveMaximum'
    | 'onlyDrainedMembersGo'
    | 'onlyEvictionsRemovePods'
    | 'exactSizeAtRest'
    | 'onlyTheLeaderActs'
  /** A sentence that names the objects. */
  readonly text: string
  /** Virtual time. */
  readonly atMs: number
}

const change = /\/(?:instance-pool|nodepool)\/([0-9a-f-]{36}):(scale|evict)$/
/** Before that an instance may still become a node. */
const registrationMs = 15 * 60_000

export class Checker {
  readonly #pools: readonly WorldPool[]
  #world: AutoscalerWorld | undefined
  #violation: Violation | undefined

  constructor(pools: readonly WorldPool[]) {
    this.#pools = pools
  }

  /** The first violation. */
  get violation(): Violation | undefined {
    return this.#violation
  }

  observe(world: AutoscalerWorld): void {
    this.#world = world
  }

  /** Wraps the connection of a process to the API server. */
  api(inner: Transport, identity: string): Transport {
    return {
      send: async (request, signal) => {
        this.#checkLeader(request, identity)
        const isObject = /\/(?:pods|nodes)\/[^/?]+(?:\?|$)/.test(request.path)
        if (request.method === 'DELETE' && isObject)
          this.#violate('onlyEvictionsRemovePods', `the autoscaler sends DELETE ${request.path}`)
        return await inner.send(request, signal)
      },
    }
  }

  /** Wraps the connection of a process to the cloud. Requests that the cloud rejects violate nothing. */
  cloud(inner: Transport, identity: string): Transport {
    return {
      send: async (request, signal) => {
        this.#checkLeader(request, identity)
        const problem = this.#problemOf(request)
        try {
          const response = await inner.send(request, signal)
          if (response.status < 300) problem?.()
          return response
        } catch (error) {
          // The call took effect, then its response was lost.
          problem?.()
          throw error
        }
      },
    }
  }

  /** Only the holder of an unexpired lease may write. */
  #checkLeader({ method, path }: HttpRequest, identity: string): void {
    const world = this.#world
    if (world === undefined || method === 'GET' || path.includes('/leases')) return
    const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 0 } = world.lease()?.spec ?? {}
    const leftMs = Date.parse(renewTime) + leaseDurationSeconds * 1000 - world.clock.now()
    if (holderIdentity === identity && leftMs >= 0) return
    const holder = holderIdentity === '' ? 'nobody' : `${holderIdentity} for ${leftMs} ms`
    this.#violate(
      'onlyTheLeaderActs',
      `${identity} sends ${method} ${path} while the lease is held by ${holder}`,
    )
  }

  /** Call it when nothing changes any more: sizes, nodes and pods must agree, and no node may be unneeded. */
  checkRest(): void {
    const world = this.#world
    if (world === undefined) return
    for (const { metadata, spec } of world.nodes())
      if (spec?.unschedulable === true || spec?.taints?.some(({ key }) => key === toBeDeletedTaint))
        this.#violate('exactSizeAtRest', `node ${metadata.name} is still marked to be deleted`)
    const isFull = this.#pools.every(({ name, max }) => world.members(name).length >= max)
    const [waiting] = world.pending()
    if (waiting !== undefined && !isFull)
      this.#violate(
        'exactSizeAtRest',
        `pod ${waiting.metadata.name} waits, and not all pools are at their maximum`,
      )
    for (const pool of this.#pools) this.#checkPool(world, pool)
  }

  #checkPool(world: AutoscalerWorld, { name, min, max }: WorldPool): void {
    const members = world.members(name)
    if (members.length < min)
      this.#violate('exactSizeAtRest', `${name} has ${members.length} members, less than ${min}`)
    if (members.length > max)
      this.#violate('exactSizeAtRest', `${name} has ${members.length} members, more than ${max}`)
    if (members.length <= min) return
    for (const id of members) {
      const node = nodeOf(world, id)
      if (node === undefined) this.#violate('exactSizeAtRest', `member ${id} of ${name} is no node`)
      else if (podsOn(world, node).length === 0)
        this.#violate('exactSizeAtRest', `node ${node.metadata.name} of ${name} is empty and stays`)
    }
  }

  /**
   * Checks a call before it is sent.
   * @returns what to do once it took effect; undefined if it is allowed.
   */
  #problemOf({ method, path, body }: HttpRequest): (() => void) | undefined {
    const [, id = '', verb] = method === 'PUT' ? (change.exec(path) ?? []) : []
    const world = this.#world
    const pool = world && this.#pools.find(({ name }) => this.#isPool(world, name, id))
    if (world === undefined || pool === undefined) return undefined
    const { size = 0, instances = [] } = JSON.parse(String(body)) as {
      readonly size?: number
      readonly instances?: readonly string[]
    }
    const members = world.members(pool.name).length
    if (verb === 'scale') return this.#scaleProblem(pool, size, members)
    if (members - instances.length < pool.min)
      return () => {
        this.#violate(
          'neverBelowMinimum',
          `${pool.name} of ${members} members loses ${instances.length}, minimum ${pool.min}`,
        )
      }
    const text = instances
      .map((instance) => undrainedText(world, instance))
      .find((each) => each !== undefined)
    if (text === undefined) return undefined
    return () => {
      this.#violate('onlyDrainedMembersGo', text)
    }
  }

  #scaleProblem({ name, max }: WorldPool, size: number, members: number): (() => void) | undefined {
    if (size < members)
      return () => {
        this.#violate('onlyDrainedMembersGo', `${name} of ${members} members is scaled to ${size}`)
      }
    if (size <= max) return undefined
    return () => {
      this.#violate('neverAboveMaximum', `${name} is scaled to ${size}, maximum ${max}`)
    }
  }

  /** Whether the id in the path is that of the pool, or of its nodepool. */
  #isPool(world: AutoscalerWorld, name: string, id: string): boolean {
    return world.poolId(name) === id || world.nodepoolId(name) === id
  }

  #violate(invariant: Violation['invariant'], text: string): void {
    this.#violation ??= { invariant, text, atMs: this.#world?.clock.monotonic() ?? 0 }
  }
}

function undrainedText(world: AutoscalerWorld, instanceId: string): string | undefined {
  const node = nodeOf(world, instanceId)
  const instance = world.cluster.cloud.instances().find(({ id }) => id === instanceId)
  if (instance === undefined) return undefined
  if (node === undefined) {
    const ageMs = world.clock.now() - instance.createdAtMs
    return ageMs >= registrationMs
      ? undefined
      : `instance ${instanceId} goes after ${ageMs / 60_000} min without a node`
  }
  if (node.spec?.taints?.some(({ key }) => key === toBeDeletedTaint) !== true)
    return `node ${node.metadata.name} goes without having been marked`
  const [pod] = podsOn(world, node)
  return pod === undefined ? undefined : `node ${node.metadata.name} goes with pod ${pod.metadata.name}`
}

function nodeOf(world: AutoscalerWorld, instanceId: string): Node | undefined {
  return world.nodes().find(({ spec }) => spec?.providerID === `exoscale://${instanceId}`)
}

/** Pods that must be evicted: those of Deployments that neither have terminated nor are terminating. */
export function podsOn(world: Pick<AutoscalerWorld, 'pods'>, { metadata }: Node): readonly Pod[] {
  return world
    .pods()
    .filter(
      ({ metadata: { deletionTimestamp, ownerReferences = [] }, spec, status }) =>
        spec.nodeName === metadata.name &&
        deletionTimestamp === undefined &&
        status?.phase !== 'Succeeded' &&
        status?.phase !== 'Failed' &&
        ownerReferences.some(({ kind }) => kind === 'ReplicaSet'),
    )
}
