/** The members of a pool with their states (cluster-autoscaler.md 1.4). */
import { type GroupInstance, NodeGroupError } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import type { ExoscaleInstance } from '../api/types.ts'
import type { NodeGroupApi } from './call-api.ts'
import { Gate } from './gate.ts'
import { membersOf } from './pool-watch.ts'

interface Reading {
  readonly member: GroupInstance
  readonly atMs: number
}

/** How long the state of a running member is cached, as large growing pools are read in every loop. */
const runningHoldsMs = 60_000

export class MemberReader {
  readonly #api: NodeGroupApi
  readonly #clock: Clock
  readonly #providerIdOf: (instanceId: string) => string
  readonly #gate = new Gate(16)
  readonly #running = new Map<string, ReadonlyMap<string, Reading>>()

  constructor(api: NodeGroupApi, clock: Clock, providerIdOf: (instanceId: string) => string) {
    this.#api = api
    this.#clock = clock
    this.#providerIdOf = providerIdOf
  }

  /**
   * Rejects if the pool or one of its members cannot be read. Members that disappear meanwhile are left out.
   */
  async read(poolId: string, signal: AbortSignal): Promise<readonly GroupInstance[]> {
    const pool = await this.#api.pool(poolId, signal)
    if (pool === undefined) throw new NodeGroupError(`instance pool ${poolId} does not exist any more`)
    const known = this.#running.get(poolId) ?? new Map<string, Reading>()
    const running = new Map<string, Reading>()
    const members = await Promise.all(
      membersOf(pool).map(async (id) => {
        const reading = this.#stillHolds(known.get(id)) ?? (await this.#readMember(id, signal))
        if (reading?.member.state === 'running') running.set(id, reading)
        return reading === undefined ? undefined : { ...reading.member, providerId: this.#providerIdOf(id) }
      }),
    )
    this.#running.set(poolId, running)
    return members.filter((member) => member !== undefined)
  }

  #stillHolds(reading: Reading | undefined): Reading | undefined {
    return reading !== undefined && this.#clock.now() - reading.atMs < runningHoldsMs ? reading : undefined
  }

  async #readMember(id: string, signal: AbortSignal): Promise<Reading | undefined> {
    const instance = await this.#gate.run(() => this.#api.instance(id, signal))
    if (instance === undefined) return undefined
    return { member: { ...memberOf(instance), providerId: id }, atMs: this.#clock.now() }
  }
}

function memberOf({ name, state }: ExoscaleInstance): Omit<GroupInstance, 'providerId'> {
  const named = name === undefined ? {} : { nodeName: name }
  switch (state ?? '') {
    case '':
      return named
    case 'starting':
      return { ...named, state: 'creating' }
    case 'running':
      return { ...named, state: 'running' }
    case 'stopping':
      return { ...named, state: 'deleting' }
    default:
      return { ...named, error: { code: 'no-code-exoscale', message: `the instance is ${state ?? ''}` } }
  }
}
