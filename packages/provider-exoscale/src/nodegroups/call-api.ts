/** The API as node groups use it: nine operations, with errors of the contract. */
import type { ExoscaleClient } from '../api/client.ts'
import type { ExoscaleInstance, InstancePool, Operation, SksCluster } from '../api/types.ts'
import { callFailed, type IamOperation, isGone } from './failures.ts'

/** A nodepool and its cluster. */
export interface NodepoolRef {
  readonly clusterId: string
  readonly nodepoolId: string
}

/** What is changed: a nodepool through its cluster, or a pool directly. */
export interface PoolRef {
  readonly poolId: string
  /** Absent for a pool outside SKS. */
  readonly nodepool?: NodepoolRef
}

/** A pool whose size is known. */
export type SizedPool = InstancePool & { readonly size: number }

/** The instance quota of the organisation, and its use. */
export interface OrganisationQuota {
  /** Negative: no limit. */
  readonly limit: number
  readonly usage?: number
}

type Client = Pick<
  ExoscaleClient,
  | 'getInstance'
  | 'getInstancePool'
  | 'listSksClusters'
  | 'getQuota'
  | 'getOperation'
  | 'waitForOperation'
  | 'scaleInstancePool'
  | 'scaleSksNodepool'
  | 'evictInstancePoolMembers'
  | 'evictSksNodepoolMembers'
>

/** Every method rejects with a NodeGroupError, or with the signal's reason. */
export class NodeGroupApi {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  /** Undefined if it does not exist. */
  instance(id: string, signal: AbortSignal): Promise<ExoscaleInstance | undefined> {
    return unlessGone('get-instance', this.#client.getInstance(id, signal), signal)
  }

  /** Undefined if it does not exist. */
  async pool(id: string, signal: AbortSignal): Promise<SizedPool | undefined> {
    const pool = await unlessGone('get-instance-pool', this.#client.getInstancePool(id, signal), signal)
    if (pool === undefined) return undefined
    const { size } = pool
    if (size !== undefined) return { ...pool, size }
    // An incomplete response must not make a group look empty, so its nodepool must confirm it.
    const nodepools = (await this.clusters(signal)).flatMap((cluster) => cluster.nodepools ?? [])
    const nodepool = nodepools.find((each) => each['instance-pool']?.id === id)
    if (nodepool?.size === 0) return { ...pool, size: 0 }
    throw callFailed('get-instance-pool', new Error('the answer has no size'))
  }

  clusters(signal: AbortSignal): Promise<readonly SksCluster[]> {
    return called('list-sks-clusters', this.#client.listSksClusters(signal), signal)
  }

  async instanceQuota(signal: AbortSignal): Promise<OrganisationQuota> {
    const { limit, usage } = await called('get-quota', this.#client.getQuota('instance', signal), signal)
    if (limit === undefined) throw callFailed('get-quota', new Error('the answer has no limit'))
    return { limit, ...(usage !== undefined && { usage }) }
  }

  scale({ poolId, nodepool }: PoolRef, size: number, signal: AbortSignal): Promise<Operation> {
    if (nodepool === undefined)
      return called('scale-instance-pool', this.#client.scaleInstancePool(poolId, { size }, signal), signal)
    const { clusterId, nodepoolId } = nodepool
    const call = this.#client.scaleSksNodepool(clusterId, nodepoolId, { size }, signal)
    return called('scale-sks-nodepool', call, signal)
  }

  evict({ poolId, nodepool }: PoolRef, ids: readonly string[], signal: AbortSignal): Promise<Operation> {
    const body = { instances: ids }
    if (nodepool === undefined) {
      const call = this.#client.evictInstancePoolMembers(poolId, body, signal)
      return called('evict-instance-pool-members', call, signal)
    }
    const { clusterId, nodepoolId } = nodepool
    const call = this.#client.evictSksNodepoolMembers(clusterId, nodepoolId, body, signal)
    return called('evict-sks-nodepool-members', call, signal)
  }

  /** Resolves once the operation has succeeded. */
  async finished(operation: Operation, timeoutMs: number, signal: AbortSignal): Promise<void> {
    await called('get-operation', this.#client.waitForOperation(operation, { timeoutMs, signal }), signal)
  }
}

async function called<T>(operation: IamOperation, call: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await call
  } catch (error) {
    signal.throwIfAborted()
    throw callFailed(operation, error)
  }
}

async function unlessGone<T>(
  operation: IamOperation,
  call: Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    signal.throwIfAborted()
    if (isGone(error)) return undefined
    throw callFailed(operation, error)
  }
}
