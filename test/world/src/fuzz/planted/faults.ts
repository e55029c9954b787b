/** The planted faults that fuzzing has to find. */
import {
  type KubeObject,
  labels,
  type Node,
  type PersistentVolumeClaim,
  type Pod,
  type TopologySpreadConstraint,
} from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { InlineDecider, type SchedulingDecider } from '@tenon/operator'
import { type CloudProvider, decorated } from '@tenon/provider'
import { oneChunk, readText, type Transport, type VirtualClock } from '@tenon/runtime'
import { distorted } from '../../simulation/planted/sight.ts'
import { withoutRefusals } from '../../simulation/planted/view-mistakes.ts'
import type { PlantedFault } from './planted-fault.ts'

/** Decides about modified pods instead of those of the cluster. */
function deciding(change: (pod: Pod) => Pod): (clock: VirtualClock) => SchedulingDecider {
  return (clock) => {
    const inner = new InlineDecider(clock)
    const changed = new WeakMap<Pod, Pod>()
    const original = new WeakMap<Pod, Pod>()
    const seen = (pod: Pod): Pod => {
      const known = changed.get(pod) ?? change(pod)
      changed.set(pod, known)
      original.set(known, pod)
      return known
    }
    const back = (pod: Pod): Pod => original.get(pod) ?? pod
    const withPods = (claim: NewClaim): NewClaim => ({ ...claim, pods: claim.pods.map(back) })
    return {
      async decide(input, options) {
        const result = await inner.decide({ ...input, pods: input.pods.map(seen) }, options)
        return {
          ...result,
          claims: result.claims.map(withPods),
          deferred: result.deferred.map(({ claim, because }) => ({ claim: withPods(claim), because })),
          placements: result.placements.map((each) => ({ ...each, pod: back(each.pod) })),
          failures: result.failures.map((each) => ({ ...each, pod: back(each.pod) })),
          undecided: result.undecided.map(back),
        }
      },
      examine: (input, question, options) => inner.examine(input, question, options),
      close: () => inner.close(),
    }
  }
}

const withoutHostPorts = (pod: Pod): Pod => ({
  ...pod,
  spec: {
    ...pod.spec,
    containers: pod.spec.containers.map((container) => ({ ...container, ports: [] })),
  },
})

/** Counts keys in a plain object, which inherits some. */
function countingKeys(pod: Pod): Pod {
  const numbers: Record<string, number> = {}
  for (const key of Object.keys(pod.spec.nodeSelector ?? {})) numbers[key] ??= Object.keys(numbers).length
  structuredClone(numbers)
  for (const { key } of pod.spec.tolerations ?? []) if (key !== undefined) structuredClone(numbers[key] ?? 0)
  return pod
}

const firstZone = (pod: Pod): Pod => {
  const isOverZones = ({ topologyKey }: Pick<TopologySpreadConstraint, 'topologyKey'>): boolean =>
    topologyKey === labels.zone
  if (pod.spec.topologySpreadConstraints?.some(isOverZones) !== true) return pod
  const nodeSelector = { ...pod.spec.nodeSelector, [labels.zone]: 'zone-a' }
  return { ...pod, spec: { ...pod.spec, nodeSelector } }
}

/** Types without a price cost Infinity, and so does every fourth type. */
function infinitePrices(inner: CloudProvider): CloudProvider {
  return decorated(inner, {
    getInstanceTypes: async (pool, signal) => {
      const types = await inner.getInstanceTypes(pool, signal)
      return types.map((type, index) => ({
        ...type,
        offerings: type.offerings.map((offering) => ({
          ...offering,
          pricePerHour: index % 4 === 0 ? Number.POSITIVE_INFINITY : offering.pricePerHour,
        })),
      }))
    },
  })
}

/** An unreadable response is treated as an empty list, or as an object that does not exist. */
function believesEmpty(inner: Transport, isList: (path: string) => boolean, empty: object): Transport {
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      if (request.method !== 'GET' || request.path.includes('watch=true')) return response
      const text = await readText(response.body)
      const isKnown = response.status >= 400 || isReadable(text)
      if (isKnown) return { ...response, body: oneChunk(text) }
      const path = request.path.split('?')[0] ?? ''
      const json = { 'content-type': 'application/json' }
      return isList(path)
        ? { status: 200, headers: json, body: oneChunk(JSON.stringify(empty)) }
        : { status: 404, headers: json, body: oneChunk(JSON.stringify(notFound)) }
    },
  }
}

const notFound = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }

function isReadable(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return (
      typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 1
    )
  } catch {
    return false
  }
}

/** Lists of claims after the first are empty, and no claim is found by name. */
function forgetsClaims(inner: Transport): Transport {
  let lists = 0
  const json = { 'content-type': 'application/json' }
  return {
    async send(request, signal) {
      const match = /\/nodeclaims(\/[^/?]+)?(\?|$)/.exec(request.path)
      const isRead = request.method === 'GET' && !request.path.includes('watch=true')
      if (match === null || !isRead) return await inner.send(request, signal)
      if (match[1] !== undefined)
        return { status: 404, headers: json, body: oneChunk(JSON.stringify(notFound)) }
      const response = await inner.send(request, signal)
      if (lists++ === 0) return response
      const list = JSON.parse(await readText(response.body)) as object
      return { ...response, body: oneChunk(JSON.stringify({ ...list, items: [] })) }
    },
  }
}

/** The first status of a claim is never updated. */
function latched(inner: Transport): Transport {
  const written = new Set<string>()
  return {
    async send(request, signal) {
      const isStatus = request.method === 'PATCH' && /nodeclaims\/[^/]+\/status/.test(request.path)
      const path = request.path.split('?')[0] ?? ''
      if (!isStatus || !written.has(path)) {
        if (isStatus) written.add(path)
        return await inner.send(request, signal)
      }
      const { body: _, ...rest } = request
      return await inner.send({ ...rest, method: 'GET', path: path.replace(/\/status$/, '') }, signal)
    },
  }
}

const withNominalMemory = (object: KubeObject): KubeObject => {
  const node = object as Node
  const type = node.metadata.labels?.['node.kubernetes.io/instance-type'] ?? ''
  const mebibytes = nominal.get(type)
  if (mebibytes === undefined || node.status?.capacity === undefined) return node
  const capacity = { ...node.status.capacity, memory: `${mebibytes}Mi` }
  const allocatable = { ...node.status.allocatable, memory: `${mebibytes - 400}Mi` }
  const whole: Node = { ...node, status: { ...node.status, capacity, allocatable } }
  return whole
}

const nominal: ReadonlyMap<string, number> = new Map([
  ['standard.micro', 512],
  ['standard.tiny', 1024],
  ['standard.small', 2048],
  ['standard.medium', 4096],
  ['standard.large', 8192],
  ['standard.extra-large', 16_384],
  ['standard.huge', 32_768],
  ['standard.mega', 65_536],
])

const asReadWriteOncePod = (object: KubeObject): KubeObject => {
  const claim = object as PersistentVolumeClaim
  const lone: PersistentVolumeClaim = { ...claim, spec: { ...claim.spec, accessModes: ['ReadWriteOncePod'] } }
  return lone
}

export const plantedFaults: readonly PlantedFault[] = [
  {
    name: 'plain-object-lookup',
    mistake: 'keys of selectors are numbered in a plain object',
    part: 'names',
    decider: deciding(countingKeys),
  },
  {
    name: 'infinite-price',
    mistake: 'an unknown price is Infinity',
    part: 'price',
    provider: infinitePrices,
  },
  {
    name: 'list-without-items',
    mistake: 'an answer of the cloud without a list is a list without members',
    part: 'answers',
    cloud: (inner) =>
      believesEmpty(inner, (path) => /\/(instance|instance-type|template)$/.test(path), { instances: [] }),
  },
  {
    name: 'latch',
    mistake: 'conditions of a claim keep the value they were given first',
    part: 'cluster',
    api: latched,
  },
  {
    name: 'host-port-ignored',
    mistake: 'host ports of pods that wait are not looked at',
    part: 'cluster',
    decider: deciding(withoutHostPorts),
  },
  {
    name: 'access-mode-ignored',
    mistake: 'whatever the access modes of a claim, one pod at a time may use it',
    part: 'cluster',
    api: (inner) => distorted(inner, { persistentvolumeclaims: asReadWriteOncePod }),
  },
  {
    name: 'capacity-not-learned',
    mistake: 'nodes are taken to have what their type has',
    part: 'evidence',
    api: (inner) => distorted(inner, { nodes: withNominalMemory }),
  },
  {
    name: 'refusal-not-heard',
    mistake: 'what the scheduler says of a node that was bought for a pod is not heard',
    part: 'evidence',
    api: (inner) => distorted(inner, { pods: withoutRefusals }),
  },
  {
    name: 'tie-without-offerings',
    mistake: 'spread begins in the first zone, whether or not the pod can be bought there',
    part: 'cluster',
    decider: deciding(firstZone),
  },
  {
    name: 'no-second-witness',
    mistake: 'claims that a list does not name are gone, and nobody asks for them by name',
    part: 'answers',
    api: forgetsClaims,
  },
]

/** @throws Error naming the known ones. */
export function plantedFault(name: string): PlantedFault {
  const found = plantedFaults.find((fault) => fault.name === name)
  if (found === undefined)
    throw new Error(
      `no planted fault ${name}; known are ${plantedFaults.map((each) => each.name).join(', ')}`,
    )
  return found
}
