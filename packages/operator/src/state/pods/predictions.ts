/** What VerticalPodAutoscalers will have pods ask for when they are made again (buffers-and-dra.md 4). */
import {
  type Container,
  controllerOf,
  formatResources,
  type OwnerReference,
  type Pod,
  type PodSpec,
  type Resources,
} from '@tenon/api'
import type { ResizedPods } from './resized-pods.ts'

export interface ContainerRequests {
  readonly container: string
  readonly requests: Resources
}

/** What a VerticalPodAutoscaler is about. */
export interface PredictionTarget {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Of one VerticalPodAutoscaler. Plain data: it survives a way through JSON. */
export interface Prediction {
  readonly namespace: string
  readonly name: string
  /** RFC 3339. */
  readonly createdAt: string
  readonly target: PredictionTarget
  readonly containers: readonly ContainerRequests[]
}

/** What CronJobs add to their name for a Job: the minute of its time. */
const cronSuffix = /-\d{8,10}$/

export class Predictions {
  /** By `namespace/name` of the VerticalPodAutoscaler. */
  readonly #all = new Map<string, Prediction>()
  /** Of each target, that of the oldest; by UID and by name. */
  #byUid: ReadonlyMap<string, Prediction> | undefined
  #byName: ReadonlyMap<string, Prediction> = new Map()
  /** Pods of one spec are made again alike. */
  readonly #specs = new WeakMap<PodSpec, { readonly prediction: Prediction; readonly spec: PodSpec }>()
  readonly #resized: Pick<ResizedPods, 'remade' | 'version'> | undefined
  #isAwaited = false
  #version = 0

  /** @param resized what pods without a prediction are made again as, if they were resized in place. */
  constructor(resized?: Pick<ResizedPods, 'remade' | 'version'>) {
    this.#resized = resized
  }

  /** Puts a prediction in place of what the same VerticalPodAutoscaler said before. */
  put(prediction: Prediction): void {
    this.#all.set(`${prediction.namespace}/${prediction.name}`, prediction)
    this.#version++
    this.#byUid = undefined
  }

  /** @param key `namespace/name` of the VerticalPodAutoscaler. */
  drop(key: string): void {
    if (!this.#all.delete(key)) return
    this.#version++
    this.#byUid = undefined
  }

  /** A larger one after every change to what any pod is {@link remade} as. */
  get version(): number {
    return this.#version + (this.#resized?.version ?? 0)
  }

  get(key: string): Prediction | undefined {
    return this.#all.get(key)
  }

  all(): readonly Prediction[] {
    return [...this.#all.values()]
  }

  /** Somebody reads what there is: until {@link known}, nothing is to be built on there being none. */
  awaited(): void {
    this.#isAwaited = true
  }

  known(): void {
    this.#isAwaited = false
  }

  get isAwaited(): boolean {
    return this.#isAwaited
  }

  /** What decides about the pod; undefined when nothing is predicted. */
  of({ metadata }: Pick<Pod, 'metadata'>): Prediction | undefined {
    if (this.#all.size === 0) return undefined
    const owner = controllerOf({ metadata })
    if (owner === undefined) return undefined
    const byUid = (this.#byUid ??= this.#index())
    const above = ownerAbove(owner, metadata.labels?.['pod-template-hash'] ?? '')
    return (
      byUid.get(owner.uid) ??
      (above && this.#byName.get(nameOf(metadata.namespace ?? '', above.group, above.kind, above.name)))
    )
  }

  /** The pod as it would be made again; the same object when nothing else is known. */
  remade(pod: Pod): Pod {
    const prediction = this.of(pod)
    if (prediction === undefined) return this.#resized?.remade(pod) ?? pod
    const known = this.#specs.get(pod.spec)
    const spec = known?.prediction === prediction ? known.spec : remadeSpec(pod.spec, prediction)
    this.#specs.set(pod.spec, { prediction, spec })
    if (pod.status?.containerStatuses === undefined) return { ...pod, spec }
    // What was promised to its containers is not promised to those of the next one.
    const { containerStatuses: _, ...status } = pod.status
    return { ...pod, spec, status }
  }

  /** Of several on one target the oldest counts, then the first by name. */
  #index(): ReadonlyMap<string, Prediction> {
    const key = ({ createdAt, name, namespace }: Prediction) => `${createdAt} ${namespace}/${name}`
    const latestFirst = this.all().toSorted((a, b) => (key(a) < key(b) ? 1 : -1))
    this.#byName = new Map(
      latestFirst.map((each) => [
        nameOf(each.namespace, each.target.group, each.target.kind, each.target.name),
        each,
      ]),
    )
    return new Map(latestFirst.map((each) => [each.target.uid, each]))
  }
}

function nameOf(namespace: string, group: string, kind: string, name: string): string {
  return [namespace, group, kind, name].join('/')
}

/** What made the owner of a pod, where its name tells: the Deployment of a ReplicaSet, the CronJob of a Job. */
function ownerAbove(
  { apiVersion, kind, name }: OwnerReference,
  hash: string,
): Omit<PredictionTarget, 'uid'> | undefined {
  const group = apiVersion.split('/')[0] ?? ''
  if (group === 'apps' && kind === 'ReplicaSet' && hash !== '' && name.endsWith(`-${hash}`))
    return { group, kind: 'Deployment', name: name.slice(0, -hash.length - 1) }
  if (group === 'batch' && kind === 'Job' && cronSuffix.test(name))
    return { group, kind: 'CronJob', name: name.replace(cronSuffix, '') }
  return undefined
}

function remadeSpec(spec: PodSpec, { containers }: Prediction): PodSpec {
  const predicted = new Map(containers.map(({ container, requests }) => [container, requests]))
  const remade = (each: Container): Container => {
    const requests = predicted.get(each.name)
    if (requests === undefined) return each
    const { resources } = each
    return {
      ...each,
      resources: { ...resources, requests: { ...resources?.requests, ...formatResources(requests) } },
    }
  }
  return { ...spec, containers: spec.containers.map(remade) }
}
