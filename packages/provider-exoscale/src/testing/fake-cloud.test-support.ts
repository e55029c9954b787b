/** A small Exoscale behind a {@link Transport}: asynchronous operations, faults, a log of calls. */
import { channel } from 'node:diagnostics_channel'
import {
  type Clock,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  rfc3339,
  type Transport,
} from '@tenon/runtime'
import type { ExoscaleInstance, ExoscaleInstanceType, Operation, Quota } from '../api/types.ts'

export const zone = 'ch-gva-2'
export const clusterId = '3f1d2c4b-5a69-4788-9aab-bccddeeff001'
/** The only instance pool, of the only nodepool. It takes every call and does nothing. */
export const poolId = '50000000-0000-4000-8000-000000000001'
export const nodepoolId = '60000000-0000-4000-8000-000000000001'
export const templateId = '20000000-0000-4000-8000-000000000001'

/** An id in the form of the API, the same for the same number. */
export function idOf(number: number): string {
  return `40000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}

export interface RecordedCall {
  readonly method: string
  readonly path: string
  readonly body: Record<string, unknown> | undefined
}

/** What becomes of a call: answered with an error, dropped before or after its effect, never answered. */
export type Fault =
  | { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> }
  | 'dropped'
  | 'silent'
  | 'lostReply'

interface Mutable extends Omit<ExoscaleInstance, 'labels' | 'state' | 'private-networks'> {
  state: string
  labels: Record<string, string>
  'private-networks': { id: string }[]
}

interface Pending {
  operation: Operation
  pollsLeft: number
  finish: () => void
}

type Json = Record<string, unknown>

/** Where every call is told of; `npm test` holds them against the API document. */
const exchanges = channel('tenon.exoscale.exchange')

export class FakeCloud implements Transport {
  readonly calls: RecordedCall[] = []
  readonly requests: HttpRequest[] = []
  readonly instances = new Map<string, Mutable>()
  readonly groups = {
    'security-group': new Map<string, Json>(),
    'anti-affinity-group': new Map<string, Json>(),
    'private-network': new Map<string, Json>(),
  }
  readonly templates = new Set<string>([templateId])
  readonly activeTemplates = new Map<string, string>([['1.34.1/standard', templateId]])
  readonly quotas = new Map<string, Quota>()
  types: ExoscaleInstanceType[] = defaultTypes()
  zones: Json[] = [{ name: zone, 'api-endpoint': `https://api-${zone}.exoscale.com/v2` }]
  /** Polls until an operation ends. */
  pollsPerOperation = 1
  /** How the next creations end. */
  creationFailures: { reason: string; message?: string }[] = []
  deletionFailures: string[] = []
  isReferenceOmitted = false
  /** New instances have no public address yet. */
  isPublicIpLate = false
  /** Answers carry what the API document does not know, as a later API may. */
  isBeyondDocument = false
  readonly #faults: {
    readonly match: (call: RecordedCall) => boolean
    readonly fault: Fault | ((call: RecordedCall) => Fault)
  }[] = []
  readonly #operations = new Map<string, Pending>()
  readonly #clock: Clock
  #sequence = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The next call that fits is disturbed; several are used up in order. */
  disturb(method: string, path: RegExp, ...faults: Fault[]): void {
    for (const fault of faults) {
      this.#faults.push({ match: (call) => call.method === method && path.test(call.path), fault })
    }
  }

  /** The next call that fits is refused with a message that quotes its user data. */
  quote(method: string, path: RegExp, status: number): void {
    const match = (call: RecordedCall) => call.method === method && path.test(call.path)
    this.#faults.push({
      match,
      fault: (call) => {
        const message = `user data is not valid: ${String(call.body?.['user-data'])}`
        return { status, body: JSON.stringify({ message }) }
      },
    })
  }

  callsTo(method: string, path: RegExp): RecordedCall[] {
    return this.calls.filter((call) => call.method === method && path.test(call.path))
  }

  addGroup(kind: keyof FakeCloud['groups'], name: string, extra: Json = {}): string {
    const id = this.nextId()
    this.groups[kind].set(id, { id, name, ...extra })
    return id
  }

  nextId(): string {
    return `10000000-0000-4000-8000-${String(++this.#sequence).padStart(12, '0')}`
  }

  async send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    signal?.throwIfAborted()
    this.requests.push(request)
    const path = request.path.replace(/^\/v2/, '')
    const body = request.body === undefined ? undefined : (JSON.parse(String(request.body)) as Json)
    const call = { method: request.method, path, body }
    this.calls.push(call)
    const at = this.#faults.findIndex((entry) => entry.match(call))
    const planned = at === -1 ? undefined : this.#faults.splice(at, 1)[0]?.fault
    const fault = typeof planned === 'function' ? planned(call) : planned
    const isDisturbed = fault !== undefined && fault !== 'lostReply'
    const [status, result] = isDisturbed ? [0, undefined] : this.#route(call)
    exchanges.publish({
      ...request,
      body: String(request.body ?? ''),
      status: this.isBeyondDocument ? 0 : status,
      reply: JSON.parse(JSON.stringify(result ?? null)) as unknown,
    })
    if (fault === 'silent') return await silence(signal)
    if (fault === 'dropped') throw new Error('socket hang up')
    if (typeof fault === 'object') return answer(fault.status, fault.body ?? '{}', fault.headers)
    if (fault === 'lostReply') throw new Error('socket hang up')
    return answer(status, JSON.stringify(result))
  }

  #route({ method, path, body }: RecordedCall): [number, unknown] {
    const [, collection = '', rest = '', more = ''] = path.split('/')
    const [id = '', action] = rest.split(':')
    const fixed = this.#fixed(method, collection, id)
    if (fixed !== undefined) return fixed
    if (collection === 'template') return this.templates.has(id) ? [200, { id }] : notFound()
    if (collection === 'sks-template') {
      const active = this.activeTemplates.get(`${rest}/${more}`)
      return active === undefined ? notFound() : [200, { 'active-template': active }]
    }
    if (collection === 'quota') return [200, this.quotas.get(rest) ?? { usage: 0, limit: -1 }]
    if (collection === 'operation') return this.#poll(id)
    if (action === 'reboot') return this.instances.has(id) ? [200, this.#start(id, () => {})] : notFound()
    if (collection === 'instance') return this.#instance(method, id, body)
    const groups = this.groups[collection as keyof FakeCloud['groups']]
    if (action === 'attach') return this.#attach(id, body?.instance)
    if (id === '') return [200, { [`${collection}s`]: [...groups.values()] }]
    const group = groups.get(id)
    return group === undefined ? notFound() : [200, group]
  }

  #instance(method: string, id: string, body: Json | undefined): [number, unknown] {
    if (method === 'POST') return [200, this.#create(body ?? {})]
    if (id === '') return [200, { instances: [...this.instances.values()].map(asListed) }]
    const instance = this.instances.get(id)
    if (instance === undefined) return notFound()
    if (method === 'DELETE') return [200, this.#delete(instance)]
    if (method === 'PUT') {
      instance.labels = body?.labels as Record<string, string>
      return [200, this.#start(id, () => {})]
    }
    return [200, instance]
  }

  /** What is answered the same whatever was called before. */
  #fixed(method: string, collection: string, id: string): [number, unknown] | undefined {
    if (collection === 'zone') return [200, { zones: this.zones }]
    if (collection === 'instance-type') return [200, { 'instance-types': this.types }]
    const isPool = collection === 'instance-pool' || collection === 'sks-cluster'
    return isPool ? this.#pool(method, collection, id) : undefined
  }

  #pool(method: string, collection: string, id: string): [number, unknown] {
    if (method === 'PUT') return [200, this.#start(poolId, () => {})]
    if (collection === 'sks-cluster')
      return [200, { 'sks-clusters': [{ id: clusterId, nodepools: [{ id: nodepoolId, size: 1 }] }] }]
    const pool = { id: poolId, state: 'running', size: 1, instances: [{ id: idOf(1) }] }
    return [200, id === '' ? { 'instance-pools': [pool] } : pool]
  }

  #create(body: Json): Operation {
    const id = this.nextId()
    const failed = this.creationFailures.shift()
    this.instances.set(id, {
      id,
      name: body.name as string,
      state: 'starting',
      labels: body.labels as Record<string, string>,
      'instance-type': body['instance-type'] as { id: string },
      template: body.template as { id: string },
      'security-groups': (body['security-groups'] ?? []) as { id: string }[],
      'anti-affinity-groups': (body['anti-affinity-groups'] ?? []) as { id: string }[],
      'private-networks': [],
      'disk-size': body['disk-size'] as number,
      ...(!this.isPublicIpLate && { 'public-ip': '198.51.100.7' }),
      'created-at': rfc3339(this.#clock.now()),
    })
    const operation = this.#start(id, () => this.#set(id, failed === undefined ? 'running' : 'error'), failed)
    if (!this.isReferenceOmitted) return operation
    const { reference: _reference, ...bare } = operation
    const pending = this.#operations.get(operation.id) as Pending
    const { reference: _stored, ...ended } = pending.operation
    pending.operation = ended
    return bare
  }

  #delete(instance: Mutable): Operation {
    instance.state = 'destroying'
    const reason = this.deletionFailures.shift()
    if (reason === undefined) return this.#start(instance.id, () => this.instances.delete(instance.id))
    return this.#start(instance.id, () => this.#set(instance.id, 'running'), { reason })
  }

  #attach(networkId: string, target: unknown): [number, unknown] {
    const instanceId = (target as { id: string }).id
    if (!this.groups['private-network'].has(networkId)) return notFound()
    const instance = this.instances.get(instanceId)
    return [200, this.#start(instanceId, () => instance?.['private-networks'].push({ id: networkId }))]
  }

  #start(referenceId: string, finish: () => void, failed?: { reason: string; message?: string }): Operation {
    const operation: Operation = { id: this.nextId(), state: 'pending', reference: { id: referenceId } }
    const end = failed === undefined ? {} : { ...failed, state: 'failure' as const }
    this.#operations.set(operation.id, {
      operation: { ...operation, state: 'success', ...end },
      pollsLeft: this.pollsPerOperation,
      finish,
    })
    return operation
  }

  #poll(id: string): [number, unknown] {
    const pending = this.#operations.get(id)
    if (pending === undefined) return notFound()
    if (--pending.pollsLeft > 0) return [200, { ...pending.operation, state: 'pending' }]
    pending.finish()
    pending.finish = () => {}
    return [200, pending.operation]
  }

  #set(id: string, state: string): void {
    const instance = this.instances.get(id)
    if (instance !== undefined) instance.state = state
  }
}

/** Nothing comes until the caller gives up. */
function silence(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    })
  })
}

function asListed(instance: Mutable): unknown {
  const { 'anti-affinity-groups': _groups, 'disk-size': _disk, ...listed } = instance
  return listed
}

function notFound(): [number, unknown] {
  return [404, { message: 'not found' }]
}

function answer(status: number, body: string, headers: Record<string, string> = {}): HttpResponse {
  return { status, headers, body: oneChunk(body) }
}

function defaultTypes(): ExoscaleInstanceType[] {
  const gib = 2 ** 30
  const shapes: [string, string, number, number, number][] = [
    ['standard', 'small', 2, 2, 0],
    ['standard', 'medium', 2, 4, 0],
    ['standard', 'large', 4, 8, 0],
    ['cpu', 'extra-large', 8, 16, 0],
    ['gpua30', 'small', 12, 56, 1],
    ['gpurtx6000pro', 'small', 12, 56, 2],
    ['storage', 'extra-large', 4, 16, 0],
  ]
  return shapes.map(([family, size, cpus, memory, gpus], index) => ({
    id: `30000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    family,
    size,
    cpus,
    memory: memory * gib,
    ...(gpus > 0 && { gpus }),
    authorized: true,
    zones: [zone],
  }))
}
