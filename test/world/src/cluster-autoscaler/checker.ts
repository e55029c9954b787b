/** What users of node groups rely on, looked at from the servers' side (must-hold 6 of the mode). */
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

  /** The first one. */
  get violation(): Violation | undefined {
    return this.#violation
  }

  observe(world: AutoscalerWorld): void {
    this.#world = world
  }

  /** What a process sends to the API server. */
  api(inner: Transport, identity: string): Transport {
    return {
      send: async (request, signal) => {
        this.#checkLeader(request, identity)
        const isObject = /\/(?:pods|nodes)\/[^/?]+(?:\?|$)/.test(request.path)
        if (request.method === 'DELETE' && isObject)
          this.#tell('onlyEvictionsRemovePods', `the autoscaler sends DELETE ${request.path}`)
        return await inner.send(request, signal)
      },
    }
  }

  /** What a process sends to the cloud. What the cloud refuses breaks nothing. */
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
          // The reply is lost after the call had its effect.
          problem?.()
          throw error
        }
      },
    }
  }

  /** Whoever changes anything holds the lease, and it has not run out. */
  #checkLeader({ method, path }: HttpRequest, identity: string): void {
    const world = this.#world
    if (world === undefined || method === 'GET' || path.includes('/leases')) return
    const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 0 } = world.lease()?.spec ?? {}
    const leftMs = Date.parse(renewTime) + leaseDurationSeconds * 1000 - world.clock.now()
    if (holderIdentity === identity && leftMs >= 0) return
    const holder = holderIdentity === '' ? 'nobody' : `${holderIdentity} for ${leftMs} ms`
    this.#tell(
      'onlyTheLeaderActs',
      `${identity} sends ${method} ${path} while the lease is held by ${holder}`,
    )
  }

  /** Nothing happens any more: sizes, nodes and pods agree, and nothing is left that is not needed. */
  checkRest(): void {
    const world = this.#world
    if (world === undefined) return
    for (const { metadata, spec } of world.nodes())
      if (spec?.unschedulable === true || spec?.taints?.some(({ key }) => key === toBeDeletedTaint))
        this.#tell('exactSizeAtRest', `node ${metadata.name} is still marked to be deleted`)
    const isFull = this.#pools.every(({ name, max }) => world.members(name).length >= max)
    const [waiting] = world.pending()
    if (waiting !== undefined && !isFull)
      this.#tell(
        'exactSizeAtRest',
        `pod ${waiting.metadata.name} waits, and not all pools are at their maximum`,
      )
    for (const pool of this.#pools) this.#checkPool(world, pool)
  }

  #checkPool(world: AutoscalerWorld, { name, min, max }: WorldPool): void {
    const members = world.members(name)
    if (members.length < min)
      this.#tell('exactSizeAtRest', `${name} has ${members.length} members, less than ${min}`)
    if (members.length > max)
      this.#tell('exactSizeAtRest', `${name} has ${members.length} members, more than ${max}`)
    if (members.length <= min) return
    for (const id of members) {
      const node = nodeOf(world, id)
      if (node === undefined) this.#tell('exactSizeAtRest', `member ${id} of ${name} is no node`)
      else if (podsOn(world, node).length === 0)
        this.#tell('exactSizeAtRest', `node ${node.metadata.name} of ${name} is empty and stays`)
    }
  }

  /** Looks before the call is sent. @returns what to do once it had its effect; undefined when nothing is wrong. */
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
        this.#tell(
          'neverBelowMinimum',
          `${pool.name} of ${members} members loses ${instances.length}, minimum ${pool.min}`,
        )
      }
    const text = instances
      .map((instance) => undrainedText(world, instance))
      .find((each) => each !== undefined)
    if (text === undefined) return undefined
    return () => {
      this.#tell('onlyDrainedMembersGo', text)
    }
  }

  #scaleProblem({ name, max }: WorldPool, size: number, members: number): (() => void) | undefined {
    if (size < members)
      return () => {
        this.#tell('onlyDrainedMembersGo', `${name} of ${members} members is scaled to ${size}`)
      }
    if (size <= max) return undefined
    return () => {
      this.#tell('neverAboveMaximum', `${name} is scaled to ${size}, maximum ${max}`)
    }
  }

  /** The path names a pool, or the nodepool that it belongs to. */
  #isPool(world: AutoscalerWorld, name: string, id: string): boolean {
    return world.poolId(name) === id || world.nodepoolId(name) === id
  }

  #tell(invariant: Violation['invariant'], text: string): void {
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

/** Pods that had to be evicted: those of Deployments that have not ended and are not about to. */
function podsOn(world: AutoscalerWorld, { metadata }: Node): readonly Pod[] {
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
