/** Bugs that an autoscaler on Cluster API could have; the world has to find each of them. */
import type { KubeObject } from '@tenon/api'
import { decorated, type NodeGroup, type NodeGroups } from '@tenon/provider'
import { ownNames } from '@tenon/provider-cluster-api'
import { type HttpRequest, oneChunk, type Transport } from '@tenon/runtime'
import { deletesPods } from '../planted.ts'
import { distorted } from '../../simulation/planted/sight.ts'
import { deleteMachine } from './hub-world.ts'

/** A bug injected at the ports of the process; its code is unchanged. */
export interface PlantedHubMistake {
  readonly name: string
  readonly mistake: string
  /** It only has an effect together with other faults. */
  readonly needsFaults?: true
  readonly api?: (inner: Transport) => Transport
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
    name: 'deleted-not-marked',
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
      decorated<NodeGroups, NodeGroups>(inner, {
        deleteInstances: async (groupId, ids, signal, options) => {
          const members = await inner.instances(groupId, signal)
          const others = members.map(({ providerId }) => providerId).filter((id) => !ids.includes(id))
          await inner.deleteInstances(groupId, others.slice(0, ids.length), signal, options)
        },
      }),
  },
  {
    name: 'requests-forgotten',
    mistake: 'only members with Nodes count, so that what was requested is requested again',
    groups: withoutRequests,
  },
  {
    name: 'bounds-imagined',
    mistake: 'MachineDeployments without bounds are scaled too',
    hub: (inner) => distorted(inner, { machinedeployments: bounded }),
  },
  {
    name: 'pods-deleted',
    mistake: 'pods are deleted instead of evicted, despite their budgets',
    api: deletesPods,
  },
  {
    name: 'claims-overlooked',
    mistake: 'Machines of NodeClaims are taken for free ones',
    needsFaults: true,
    hub: (inner) =>
      distorted(inner, {
        machines: (object) => without(without(object, ownNames.nodeClaim), ownNames.nodeClaimUid),
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

/** Members that have not joined do not count. */
function withoutRequests(inner: NodeGroups): NodeGroups {
  const running = new Map<string, number>()
  const seen = (group: NodeGroup) => ({ ...group, targetSize: running.get(group.id) ?? group.targetSize })
  return decorated<NodeGroups, NodeGroups>(inner, {
    list: () => inner.list().map(seen),
    group: (id) => {
      const group = inner.group(id)
      return group && seen(group)
    },
    instances: async (groupId, signal) => {
      const members = await inner.instances(groupId, signal)
      running.set(groupId, members.filter(({ state }) => state === 'running').length)
      return members
    },
  })
}

/** An object without an annotation. */
function without({ metadata, ...object }: KubeObject, annotation: string): KubeObject {
  const { [annotation]: _, ...annotations } = metadata.annotations ?? {}
  return { ...object, metadata: { ...metadata, annotations } }
}

/** A MachineDeployment with bounds, as if it were a node group. */
function bounded({ metadata, ...object }: KubeObject): KubeObject {
  const size = (which: string) => `cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`
  const annotations = { [size('min')]: '0', [size('max')]: '9', ...metadata.annotations }
  return { ...object, metadata: { ...metadata, annotations } }
}
