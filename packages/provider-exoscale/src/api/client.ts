/** Exoscale API v2, one method per operation, named as in the official TypeScript SDK. */
import { ownValue } from '@tenon/api'
import type { AnswerCheck, Clock } from '@tenon/runtime'
import {
  activeTemplateCheck,
  hasName,
  hasTextId,
  instanceCheck,
  isInstance,
  isSksCluster,
  listCheck,
  objectCheck,
  operationCheck,
  poolCheck,
  quotaCheck,
} from './answers.ts'
import { ExoscaleHttp, type HttpOptions } from './http.ts'
import { waitForOperation, type WaitOptions } from './operations.ts'
import type {
  AntiAffinityGroup,
  CreateInstanceRequest,
  ExoscaleInstance,
  ExoscaleInstanceType,
  EvictRequest,
  InstancePool,
  NamedResource,
  Operation,
  Quota,
  ScaleRequest,
  SksCluster,
  Template,
  UpdateInstanceRequest,
  Zone,
} from './types.ts'

type Signal = AbortSignal | undefined

/** A client of one zone's endpoint. Every method may be repeated except `createInstance`. */
export class ExoscaleClient {
  readonly #http: ExoscaleHttp
  readonly #clock: Clock

  constructor(options: HttpOptions) {
    this.#http = new ExoscaleHttp(options)
    this.#clock = options.clock
  }

  async listZones(signal?: AbortSignal): Promise<readonly Zone[]> {
    const path = '/zone'
    const body = await this.#http.call<{ zones: readonly Zone[] }>({
      method: 'GET',
      path,
      check: listCheck('zones', hasName),
      signal,
      isSigned: false,
    })
    return body.zones
  }

  async listInstanceTypes(signal?: AbortSignal): Promise<readonly ExoscaleInstanceType[]> {
    return await this.#list('/instance-type', 'instance-types', signal, hasTextId)
  }

  getTemplate(id: string, signal?: AbortSignal): Promise<Template> {
    return this.#get(`/template/${encodeURIComponent(id)}`, objectCheck(id), signal)
  }

  /** Id of the template of SKS nodes for a Kubernetes version; `not-found` if there is none. */
  async getActiveNodepoolTemplate(version: string, variant: string, signal?: AbortSignal): Promise<string> {
    const path = `/sks-template/${encodeURIComponent(version)}/${encodeURIComponent(variant)}`
    return (await this.#get<{ 'active-template': string }>(path, activeTemplateCheck, signal))[
      'active-template'
    ]
  }

  listSecurityGroups(signal?: AbortSignal): Promise<readonly NamedResource[]> {
    return this.#list('/security-group', 'security-groups', signal)
  }

  getSecurityGroup(id: string, signal?: AbortSignal): Promise<NamedResource> {
    return this.#get(`/security-group/${encodeURIComponent(id)}`, objectCheck(id), signal)
  }

  listAntiAffinityGroups(signal?: AbortSignal): Promise<readonly NamedResource[]> {
    return this.#list('/anti-affinity-group', 'anti-affinity-groups', signal)
  }

  getAntiAffinityGroup(id: string, signal?: AbortSignal): Promise<AntiAffinityGroup> {
    return this.#get(`/anti-affinity-group/${encodeURIComponent(id)}`, objectCheck(id), signal)
  }

  listPrivateNetworks(signal?: AbortSignal): Promise<readonly NamedResource[]> {
    return this.#list('/private-network', 'private-networks', signal)
  }

  getPrivateNetwork(id: string, signal?: AbortSignal): Promise<NamedResource> {
    return this.#get(`/private-network/${encodeURIComponent(id)}`, objectCheck(id), signal)
  }

  attachInstanceToPrivateNetwork(
    networkId: string,
    instanceId: string,
    signal?: AbortSignal,
  ): Promise<Operation> {
    const path = `/private-network/${encodeURIComponent(networkId)}:attach`
    const body = { instance: { id: instanceId } }
    return this.#http.call({ method: 'PUT', path, body, check: operationCheck(), signal })
  }

  /** All instances of the zone, without anti-affinity groups and disk sizes. */
  listInstances(signal?: AbortSignal): Promise<readonly ExoscaleInstance[]> {
    return this.#list('/instance', 'instances', signal, isInstance)
  }

  getInstance(id: string, signal?: AbortSignal): Promise<ExoscaleInstance> {
    return this.#get(`/instance/${encodeURIComponent(id)}`, instanceCheck(id), signal)
  }

  /** Not retried if its response is lost: look for the instance by its labels. */
  createInstance(request: CreateInstanceRequest, signal?: AbortSignal): Promise<Operation> {
    return this.#http.call({
      method: 'POST',
      path: '/instance',
      body: request,
      check: operationCheck(),
      signal,
    })
  }

  updateInstance(id: string, request: UpdateInstanceRequest, signal?: AbortSignal): Promise<Operation> {
    return this.#http.call({
      method: 'PUT',
      path: `/instance/${encodeURIComponent(id)}`,
      body: request,
      check: operationCheck({ referenceId: id }),
      signal,
    })
  }

  deleteInstance(id: string, signal?: AbortSignal): Promise<Operation> {
    const path = `/instance/${encodeURIComponent(id)}`
    return this.#http.call({ method: 'DELETE', path, check: operationCheck({ referenceId: id }), signal })
  }

  /** Not retried if its response is lost: the instance may be starting already. */
  rebootInstance(id: string, signal?: AbortSignal): Promise<Operation> {
    const path = `/instance/${encodeURIComponent(id)}:reboot`
    const check = operationCheck({ referenceId: id })
    return this.#http.call({ method: 'PUT', path, check, signal, isRepeatable: false })
  }

  getInstancePool(id: string, signal?: AbortSignal): Promise<InstancePool> {
    return this.#get(`/instance-pool/${encodeURIComponent(id)}`, poolCheck(id), signal)
  }

  /** Including pools of nodepools. */
  listInstancePools(signal?: AbortSignal): Promise<readonly InstancePool[]> {
    return this.#list('/instance-pool', 'instance-pools', signal)
  }

  scaleInstancePool(id: string, request: ScaleRequest, signal?: AbortSignal): Promise<Operation> {
    return this.#change(`/instance-pool/${encodeURIComponent(id)}:scale`, request, signal)
  }

  /** Removes members and reduces the pool's size by their number. */
  evictInstancePoolMembers(id: string, request: EvictRequest, signal?: AbortSignal): Promise<Operation> {
    return this.#change(`/instance-pool/${encodeURIComponent(id)}:evict`, request, signal)
  }

  /** All SKS clusters of the zone with their nodepools. */
  listSksClusters(signal?: AbortSignal): Promise<readonly SksCluster[]> {
    return this.#list('/sks-cluster', 'sks-clusters', signal, isSksCluster)
  }

  scaleSksNodepool(
    clusterId: string,
    nodepoolId: string,
    request: ScaleRequest,
    signal?: AbortSignal,
  ): Promise<Operation> {
    return this.#change(`${nodepoolPath(clusterId, nodepoolId)}:scale`, request, signal)
  }

  /** Removes members and reduces the nodepool's size by their number. */
  evictSksNodepoolMembers(
    clusterId: string,
    nodepoolId: string,
    request: EvictRequest,
    signal?: AbortSignal,
  ): Promise<Operation> {
    return this.#change(`${nodepoolPath(clusterId, nodepoolId)}:evict`, request, signal)
  }

  getQuota(entity: string, signal?: AbortSignal): Promise<Quota> {
    return this.#get(`/quota/${encodeURIComponent(entity)}`, quotaCheck, signal)
  }

  getOperation(id: string, signal?: AbortSignal): Promise<Operation> {
    return this.#get(`/operation/${encodeURIComponent(id)}`, operationCheck({ id }), signal)
  }

  /** Resolves once the operation has succeeded; see {@link waitForOperation}. */
  waitForOperation(operation: Operation, options: WaitOptions = {}): Promise<Operation> {
    return waitForOperation(operation, (id) => this.getOperation(id, options.signal), this.#clock, options)
  }

  #get<T>(path: string, check: AnswerCheck, signal: Signal): Promise<T> {
    return this.#http.call<T>({ method: 'GET', path, check, signal })
  }

  #change(path: string, body: object, signal: Signal): Promise<Operation> {
    return this.#http.call({ method: 'PUT', path, body, check: operationCheck(), signal })
  }

  async #list<T>(
    path: string,
    key: string,
    signal: Signal,
    isEntry?: Parameters<typeof listCheck>[1],
  ): Promise<readonly T[]> {
    const body = await this.#get<Readonly<Record<string, readonly T[]>>>(
      path,
      listCheck(key, isEntry),
      signal,
    )
    return ownValue(body, key) ?? []
  }
}

function nodepoolPath(clusterId: string, nodepoolId: string): string {
  return `/sks-cluster/${encodeURIComponent(clusterId)}/nodepool/${encodeURIComponent(nodepoolId)}`
}
