/** The objects of a round, and builders for its pods. */
import {
  kinds,
  type PodSpec,
  type ResourceList,
  type ResourceType,
  type UnstructuredObject,
} from '@tenon/api'
import { integerBetween, type Random } from '@tenon/runtime'

const namespaced = (group: string, kind: string, plural: string): ResourceType => ({
  group,
  version: 'v1',
  kind,
  plural,
  namespaced: true,
})

/** Kinds that only the proof writes. */
export const proofKinds = {
  deployment: namespaced('apps', 'Deployment', 'deployments'),
  daemonSet: namespaced('apps', 'DaemonSet', 'daemonsets'),
  replicaSet: namespaced('apps', 'ReplicaSet', 'replicasets'),
  serviceAccount: namespaced('', 'ServiceAccount', 'serviceaccounts'),
  runtimeClass: {
    group: 'node.k8s.io',
    version: 'v1',
    kind: 'RuntimeClass',
    plural: 'runtimeclasses',
    namespaced: false,
  },
  customResourceDefinition: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    kind: 'CustomResourceDefinition',
    plural: 'customresourcedefinitions',
    namespaced: false,
  },
} as const satisfies Record<string, ResourceType>

/** An object to create, and its resource. */
export interface Item {
  readonly type: ResourceType
  readonly object: UnstructuredObject
  /** Number of pods that it creates. */
  readonly pods: number
}

/** Fields of a pod that a round sets; `requests` are those of its only container. */
export interface PodParts {
  readonly namespace: string
  readonly name: string
  /** Besides `app`, which is the name unless given here. */
  readonly labels?: Readonly<Record<string, string>>
  readonly requests?: ResourceList
  readonly spec?: Partial<PodSpec> & { readonly runtimeClassName?: string }
}

const image = 'registry.k8s.io/pause:3.10'

function podTemplate({ name, labels, requests, spec }: PodParts) {
  const resources = { requests: requests ?? { cpu: '250m', memory: '256Mi' } }
  return {
    metadata: { labels: { app: name, ...labels } },
    spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image, resources }], ...spec },
  }
}

/** A pod without a controller. */
export function barePod(parts: PodParts): Item {
  const { namespace, name } = parts
  const { metadata, spec } = podTemplate(parts)
  return {
    type: kinds.pod,
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name, namespace }, spec },
    pods: 1,
  }
}

/** A Deployment whose pods have the label `app: name`. */
export function deployment(replicas: number, parts: PodParts): Item {
  const { namespace, name } = parts
  const template = podTemplate(parts)
  const selector = { matchLabels: { app: template.metadata.labels.app ?? name } }
  return {
    type: proofKinds.deployment,
    object: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: { replicas, selector, template },
    },
    pods: replicas,
  }
}

/** A DaemonSet whose pods have the label `app: name`; they come with nodes, so nobody waits for them. */
export function daemonSet(parts: PodParts): Item {
  const { namespace, name } = parts
  const template = podTemplate(parts)
  const selector = { matchLabels: { app: name } }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace },
    spec: { selector, template },
  }
  return { type: proofKinds.daemonSet, object, pods: 0 }
}

/** An object without pods. */
export function item(type: ResourceType, object: UnstructuredObject): Item {
  return { type, object, pods: 0 }
}

export function container(name: string, requests: ResourceList, restartPolicy?: 'Always') {
  return { name, image, resources: { requests }, ...(restartPolicy && { restartPolicy }) }
}

/** Selects the pods of one app. */
export const ofApp = (app: string) => ({ matchLabels: { app } })

/** Reproducible random choices of a round. */
export class Draw {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  between(low: number, high: number): number {
    return integerBetween(this.#random, low, high)
  }

  pick<T>(list: readonly T[]): T {
    return list[this.between(0, list.length - 1)] as T
  }

  /** True in `percent` of 100 draws. */
  chance(percent: number): boolean {
    return this.between(1, 100) <= percent
  }

  /** One to `most` different members of `list`, in its order. */
  some<T>(list: readonly T[], most: number): T[] {
    const rest = [...list]
    const wanted = this.between(1, Math.min(most, list.length))
    while (rest.length > wanted) rest.splice(this.between(0, rest.length - 1), 1)
    return rest
  }

  /** Requests of an ordinary pod: 0.1 to 3 CPU with 1 to 6 GiB per CPU. */
  requests(): ResourceList {
    const cpu = this.pick([100, 250, 500, 750, 1000, 1500, 2000, 3000])
    const memory = Math.max(128, Math.round(cpu * this.pick([1, 2, 3, 4, 6])))
    return { cpu: `${cpu}m`, memory: `${memory}Mi` }
  }
}
