/** Bugs that an autoscaler of node groups could have; the world has to find each of them. */
import { decorated, type NodeGroups } from '@tenon/provider'
import { type HttpRequest, oneChunk, readText, type Transport } from '@tenon/runtime'

/** A bug injected at the ports of the process; its code is unchanged. */
export interface PlantedMistake {
  readonly name: string
  readonly mistake: string
  /** It only has an effect together with other faults. */
  readonly needsFaults?: true
  /** Number of processes that compete for the lease; default 1. */
  readonly replicas?: number
  readonly api?: (inner: Transport) => Transport
  readonly groups?: (inner: NodeGroups) => NodeGroups
  readonly specs?: (specs: readonly string[]) => readonly string[]
}

export const plantedMistakes: readonly PlantedMistake[] = [
  {
    name: 'neighbour-removed',
    mistake: 'a member other than the drained one is removed',
    groups: (inner) =>
      decorated<NodeGroups, NodeGroups>(inner, {
        deleteInstances: async (groupId, ids, signal, options) => {
          const members = await inner.instances(groupId, signal)
          const others = members.map(({ providerId }) => providerId).filter((id) => !ids.includes(id))
          await inner.deleteInstances(groupId, others.slice(0, ids.length), signal, options)
        },
      }),
  },
  {
    name: 'ids-mistaken',
    mistake: 'members are identified by IDs that no node has, so that they never seem to join',
    groups: (inner) =>
      decorated<NodeGroups, NodeGroups>(inner, {
        instances: async (groupId, signal) => {
          const members = await inner.instances(groupId, signal)
          return members.map((member) => {
            const { nodeName: _, providerId, ...rest } = member
            return { ...rest, providerId: providerId.toUpperCase().replace('EXOSCALE', 'exoscale') }
          })
        },
      }),
  },
  {
    name: 'removals-believed',
    mistake: 'a removal counts as done once requested, whatever its outcome',
    groups: (inner) => decorated<NodeGroups, NodeGroups>(inner, { deleteInstances: () => Promise.resolve() }),
  },
  {
    name: 'minimum-off-by-one',
    mistake: 'one node fewer than the minimum is kept',
    specs: (specs) => specs.map((spec) => withLimits(spec, (min, max) => [Math.max(1, min - 1), max])),
  },
  {
    name: 'maximum-off-by-one',
    mistake: 'one node more than the maximum is requested',
    specs: (specs) => specs.map((spec) => withLimits(spec, (min, max) => [min, max + 1])),
  },
  {
    name: 'pods-deleted',
    mistake: 'pods are deleted instead of evicted, despite their budgets',
    api: deletesPods,
  },
  {
    name: 'evictions-forgotten',
    mistake: 'evictions count as done, and pods as gone, without a request',
    api: withoutEvictions,
  },
  {
    name: 'marks-kept',
    mistake: 'nodes whose removal is cancelled stay tainted',
    needsFaults: true,
    api: withKeptMarks,
  },
  {
    name: 'pods-remembered',
    mistake: 'which pods are on a node is asked once, and remembered',
    api: withRememberedPods,
  },
  {
    name: 'lease-imagined',
    mistake: 'every process takes the lease to be its own',
    replicas: 2,
    api: withOwnLease,
  },
]

export function deletesPods(inner: Transport): Transport {
  return { send: (request, signal) => inner.send(asDeletion(request), signal) }
}

function withLimits(spec: string, change: (min: number, max: number) => readonly [number, number]): string {
  const [min, max, ...name] = spec.split(':')
  return [...change(Number(min), Number(max)), ...name].join(':')
}

const eviction = /^(.*\/pods\/[^/]+)\/eviction(?:\?.*)?$/

function asDeletion(request: HttpRequest): HttpRequest {
  const path = request.method === 'POST' ? eviction.exec(request.path)?.[1] : undefined
  if (path === undefined) return request
  const { body: _, ...rest } = request
  return { ...rest, method: 'DELETE', path }
}

function withoutEvictions(inner: Transport): Transport {
  const evicted = new Set<string>()
  return {
    send: async (request, signal) => {
      const path = request.method === 'POST' ? eviction.exec(request.path)?.[1] : undefined
      if (path !== undefined) {
        evicted.add(path)
        return answer(201, { kind: 'Status', apiVersion: 'v1', status: 'Success' })
      }
      const isGone = request.method === 'GET' && evicted.has(request.path.split('?')[0] ?? '')
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }
      return isGone ? answer(404, status) : await inner.send(request, signal)
    },
  }
}

/** Drops writes of nodes that would remove the taint, and responds as if they had been made. */
function withKeptMarks(inner: Transport): Transport {
  return {
    send: async (request, signal) => {
      const isNode = request.method === 'PUT' && /\/nodes\/[^/]+$/.test(request.path)
      if (!isNode) return await inner.send(request, signal)
      const text = String(request.body)
      if (text.includes('ToBeDeletedByClusterAutoscaler')) return await inner.send(request, signal)
      return answer(200, JSON.parse(text) as object)
    },
  }
}

/** The pods of a node are always those of the first response about it. */
function withRememberedPods(inner: Transport): Transport {
  const answers = new Map<string, string>()
  return {
    send: async (request, signal) => {
      const isAsked = request.method === 'GET' && /\/pods\?.*fieldSelector=spec\.nodeName/.test(request.path)
      if (!isAsked) return await inner.send(request, signal)
      const known = answers.get(request.path)
      if (known !== undefined) return answer(200, JSON.parse(known) as object)
      const response = await inner.send(request, signal)
      const text = await readText(response.body)
      if (response.status === 200) answers.set(request.path, text)
      return answer(response.status, JSON.parse(text) as object)
    },
  }
}

/** The process sees only its own writes of the lease. */
function withOwnLease(inner: Transport): Transport {
  let own: object | undefined
  return {
    send: async (request, signal) => {
      if (!request.path.includes('/leases')) return await inner.send(request, signal)
      if (request.method !== 'GET') {
        const { metadata, ...rest } = JSON.parse(String(request.body)) as { readonly metadata: object }
        own = { ...rest, metadata: { uid: 'own', ...metadata, resourceVersion: '1' } }
        return answer(request.method === 'POST' ? 201 : 200, own)
      }
      if (own !== undefined && !request.path.includes('watch=')) return answer(200, own)
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }
      return answer(404, status)
    },
  }
}

function answer(status: number, body: object) {
  return { status, headers: { 'content-type': 'application/json' }, body: oneChunk(JSON.stringify(body)) }
}
