/** Exoscale API v2, one method for each operation in use, named as in the official TypeScript SDK. */
import type { Clock } from '@tenon/runtime'
import { ExoscaleHttp, type HttpOptions } from './http.ts'
import { waitForOperation, type WaitOptions } from './operations.ts'
import type {
  AntiAffinityGroup,
  CreateInstanceRequest,
  ExoscaleInstance,
  ExoscaleInstanceType,
  NamedResource,
  Operation,
  Quota,
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
    const body = await this.#http.call<{ zones?: readonly Zone[] }>({
      method: 'GET',
      path,
      signal,
      isSigned: false,
    })
    return body.zones ?? []
  }

  async listInstanceTypes(signal?: AbortSignal): Promise<readonly ExoscaleInstanceType[]> {
    const body = await this.#get<{ 'instance-types'?: readonly ExoscaleInstanceType[] }>(
      '/instance-type',
      signal,
    )
    return body['instance-types'] ?? []
  }

  getTemplate(id: string, signal?: AbortSignal): Promise<Template> {
    return this.#get(`/template/${encodeURIComponent(id)}`, signal)
  }

  /** Id of the template for SKS nodes of a Kubernetes version, or undefined when there is none. */
  async getActiveNodepoolTemplate(
    version: string,
    variant: string,
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    const path = `/sks-template/${encodeURIComponent(version)}/${encodeURIComponent(variant)}`
    return (await this.#get<{ 'active-template'?: string }>(path, signal))['active-template']
  }

  async listSecurityGroups(signal?: AbortSignal): Promise<readonly NamedResource[] | undefined> {
    return (await this.#get<Lists>('/security-group', signal))['security-groups']
  }

  getSecurityGroup(id: string, signal?: AbortSignal): Promise<NamedResource> {
    return this.#get(`/security-group/${encodeURIComponent(id)}`, signal)
  }

  async listAntiAffinityGroups(signal?: AbortSignal): Promise<readonly NamedResource[] | undefined> {
    return (await this.#get<Lists>('/anti-affinity-group', signal))['anti-affinity-groups']
  }

  getAntiAffinityGroup(id: string, signal?: AbortSignal): Promise<AntiAffinityGroup> {
    return this.#get(`/anti-affinity-group/${encodeURIComponent(id)}`, signal)
  }

  async listPrivateNetworks(signal?: AbortSignal): Promise<readonly NamedResource[] | undefined> {
    return (await this.#get<Lists>('/private-network', signal))['private-networks']
  }

  getPrivateNetwork(id: string, signal?: AbortSignal): Promise<NamedResource> {
    return this.#get(`/private-network/${encodeURIComponent(id)}`, signal)
  }

  attachInstanceToPrivateNetwork(
    networkId: string,
    instanceId: string,
    signal?: AbortSignal,
  ): Promise<Operation> {
    const path = `/private-network/${encodeURIComponent(networkId)}:attach`
    return this.#http.call({ method: 'PUT', path, body: { instance: { id: instanceId } }, signal })
  }

  /** All instances of the zone; without anti-affinity groups and disk sizes. */
  async listInstances(signal?: AbortSignal): Promise<readonly ExoscaleInstance[]> {
    return (await this.#get<{ instances?: readonly ExoscaleInstance[] }>('/instance', signal)).instances ?? []
  }

  getInstance(id: string, signal?: AbortSignal): Promise<ExoscaleInstance> {
    return this.#get(`/instance/${encodeURIComponent(id)}`, signal)
  }

  /** Not repeated when its answer is lost: look for the instance by its labels. */
  createInstance(request: CreateInstanceRequest, signal?: AbortSignal): Promise<Operation> {
    return this.#http.call({ method: 'POST', path: '/instance', body: request, signal })
  }

  updateInstance(id: string, request: UpdateInstanceRequest, signal?: AbortSignal): Promise<Operation> {
    return this.#http.call({
      method: 'PUT',
      path: `/instance/${encodeURIComponent(id)}`,
      body: request,
      signal,
    })
  }

  deleteInstance(id: string, signal?: AbortSignal): Promise<Operation> {
    return this.#http.call({ method: 'DELETE', path: `/instance/${encodeURIComponent(id)}`, signal })
  }

  getQuota(entity: string, signal?: AbortSignal): Promise<Quota> {
    return this.#get(`/quota/${encodeURIComponent(entity)}`, signal)
  }

  getOperation(id: string, signal?: AbortSignal): Promise<Operation> {
    return this.#get(`/operation/${encodeURIComponent(id)}`, signal)
  }

  /** Resolves once the operation has succeeded; see {@link waitForOperation}. */
  waitForOperation(operation: Operation, options: WaitOptions = {}): Promise<Operation> {
    return waitForOperation(operation, (id) => this.getOperation(id, options.signal), this.#clock, options)
  }

  #get<T>(path: string, signal: Signal): Promise<T> {
    return this.#http.call<T>({ method: 'GET', path, signal })
  }
}

interface Lists {
  readonly 'security-groups'?: readonly NamedResource[]
  readonly 'anti-affinity-groups'?: readonly NamedResource[]
  readonly 'private-networks'?: readonly NamedResource[]
}
