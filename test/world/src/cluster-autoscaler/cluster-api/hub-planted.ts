/** Bugs that an autoscaler on Cluster API could have; the world has to find each of them. */
import type { NodeGroups } from '@tenon/provider'
import { type HttpRequest, oneChunk, type Transport } from '@tenon/runtime'
import { deleteMachine } from './hub-world.ts'

/** A bug injected at the ports of the process; its code is unchanged. */
export interface PlantedHubMistake {
  readonly name: string
  readonly mistake: string
  readonly hub?: (inner: Transport) => Transport
  readonly groups?: (inner: NodeGroups) => NodeGroups
}

export const plantedHubMistakes: readonly PlantedHubMistake[] = [
  {
    name: 'marks-forgotten',
    mistake: 'replicas are lowered without a mark on the Machine',
    hub: (inner) => answering(inner, (request) => isMark(request)),
  },
  {
    name: 'lowered-twice',
    mistake: 'replicas are lowered by one more than Machines are marked',
    hub: (inner) => resized(inner, (replicas, isLower) => (isLower ? Math.max(0, replicas - 1) : replicas)),
  },
  {
    name: 'raised-too-far',
    mistake: 'replicas are raised beyond the maximum',
    hub: (inner) => resized(inner, (replicas, isLower) => (isLower ? replicas : replicas + 6)),
  },
  {
    name: 'machines-deleted',
    mistake: 'Machines are deleted instead of marked',
    hub: (inner) => ({
      send: (request, signal) => {
        if (!isMark(request)) return inner.send(request, signal)
        const { body: _, ...rest } = request
        return inner.send({ ...rest, method: 'DELETE', path: request.path.split('?')[0] ?? '' }, signal)
      },
    }),
  },
  {
    name: 'neighbour-removed',
    mistake: 'a Machine other than the drained one is removed',
    groups: (inner) =>
      withCalls(inner, {
        deleteInstances: async (groupId, ids, signal, options) => {
          const members = await inner.instances(groupId, signal)
          const others = members.map(({ providerId }) => providerId).filter((id) => !ids.includes(id))
          await inner.deleteInstances(groupId, others.slice(0, ids.length), signal, options)
        },
      }),
  },
]

const resize = /\/machinedeployments\/[^/?]+(\/scale)?(?:\?|$)/
const isMark = ({ method, path, body }: HttpRequest): boolean =>
  (method === 'PATCH' || method === 'PUT') &&
  /\/machines\/[^/?]+(?:\?|$)/.test(path) &&
  String(body).includes(`"${deleteMachine}":"`)
const isResize = ({ method, path }: HttpRequest): boolean =>
  (method === 'PATCH' || method === 'PUT') && resize.test(path)

/** Answers some writes as if they had succeeded. */
function answering(inner: Transport, isAnswered: (request: HttpRequest) => boolean): Transport {
  return {
    send: (request, signal) =>
      isAnswered(request)
        ? Promise.resolve({
            status: 200,
            headers: { 'content-type': 'application/json' },
            body: oneChunk(String(request.body)),
          })
        : inner.send(request, signal),
  }
}

function resized(inner: Transport, change: (replicas: number, isLower: boolean) => number): Transport {
  const last = new Map<string, number>()
  return {
    send: (request, signal) => {
      if (!isResize(request)) return inner.send(request, signal)
      const body = JSON.parse(String(request.body)) as { readonly spec?: { readonly replicas?: number } }
      const { replicas } = body.spec ?? {}
      if (replicas === undefined) return inner.send(request, signal)
      const before = last.get(request.path)
      last.set(request.path, replicas)
      const changed = change(replicas, before !== undefined && replicas < before)
      const text = JSON.stringify({ ...body, spec: { ...body.spec, replicas: changed } })
      return inner.send({ ...request, body: text }, signal)
    },
  }
}

/** The calls of node groups, some of them replaced. */
function withCalls(inner: NodeGroups, calls: Partial<NodeGroups>): NodeGroups {
  return new Proxy(inner, {
    get: (target, key) => {
      const value: unknown = Reflect.get(Object.hasOwn(calls, key) ? calls : target, key)
      return typeof value === 'function' ? value.bind(Object.hasOwn(calls, key) ? calls : target) : value
    },
  })
}
