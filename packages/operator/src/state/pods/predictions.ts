/** Requests that pods will have when they are recreated (buffers-and-dra.md 4). */
import {
  type Container,
  controllerOf,
  formatResources,
  type OwnerReference,
  ownValue,
  parseResource,
  type Pod,
  type PodSpec,
  type ResourceList,
  type Resources,
} from '@tenon/api'
import type { Change } from '@tenon/kube'

export interface ContainerRequests {
  readonly container: string
  readonly requests: Resources
}

export interface PredictionTarget {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Requests set by one VerticalPodAutoscaler. Plain data that can be stored as JSON. */
export interface Prediction {
  readonly namespace: string
  readonly name: string
  /** RFC 3339. */
  readonly createdAt: string
  readonly target: PredictionTarget
  readonly containers: readonly ContainerRequests[]
}

/** Suffix of Jobs of a CronJob: the minute of the schedule. */
const cronSuffix = /-\d{8,10}$/

export class Predictions {
  /** By `namespace/name` of the VerticalPodAutoscaler. */
  readonly #all = new Map<string, Prediction>()
  /** The oldest of each target, by UID and by name; undefined after a change. */
  #byUid: ReadonlyMap<string, Prediction> | undefined
  #byName: ReadonlyMap<string, Prediction> = new Map()
  /** Memo by spec, which cached pods of one workload share. */
  readonly #specs = new WeakMap<PodSpec, { readonly prediction: Prediction; readonly spec: PodSpec }>()
  readonly #resized: Pick<ResizedPods, 'remade' | 'version'> | undefined
  #isAwaited = false
  #version = 0

  /** @param resized for pods without a prediction. */
  constructor(resized?: Pick<ResizedPods, 'remade' | 'version'>) {
    this.#resized = resized
  }

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

  /** Increases with every change of {@link remade}. */
  get version(): number {
    return this.#version + (this.#resized?.version ?? 0)
  }

  get(key: string): Prediction | undefined {
    return this.#all.get(key)
  }

  all(): readonly Prediction[] {
    return [...this.#all.values()]
  }

  /** A controller reads predictions: until {@link known}, their absence means nothing. */
  awaited(): void {
    this.#isAwaited = true
  }

  known(): void {
    this.#isAwaited = false
  }

  get isAwaited(): boolean {
    return this.#isAwaited
  }

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

  /** The pod as it would be recreated; the same object if nothing changes. */
  remade(pod: Pod): Pod {
    const prediction = this.of(pod)
    if (prediction === undefined) return this.#resized?.remade(pod) ?? pod
    const known = this.#specs.get(pod.spec)
    const spec = known?.prediction === prediction ? known.spec : remadeSpec(pod.spec, prediction)
    this.#specs.set(pod.spec, { prediction, spec })
    if (pod.status?.containerStatuses === undefined && pod.status?.resources === undefined)
      return { ...pod, spec }
    // Allocated resources are not inherited by the new pod.
    const { containerStatuses: _, resources: __, allocatedResources: ___, ...status } = pod.status
    return { ...pod, spec, status }
  }

  /** If several have one target, the oldest wins, then the first by name. */
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

/** The Deployment of a ReplicaSet or the CronJob of a Job, guessed from the name. */
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

interface Pods {
  readonly onChange: (listener: (change: Change<Pod>) => void) => unknown
}

export class ResizedPods {
  /** Containers before the first resize, by UID of the pod. */
  readonly #before = new Map<string, readonly Container[]>()
  #version = 0
  /** Memo by spec, which cached pods of one workload share. */
  readonly #specs = new WeakMap<PodSpec, { readonly before: readonly Container[]; readonly spec: PodSpec }>()

  follow(pods: Pods): void {
    pods.onChange((change) => {
      const uid = change.object.metadata.uid ?? ''
      if (change.kind === 'deleted' && this.#before.delete(uid)) this.#version++
      if (change.kind !== 'updated' || this.#before.has(uid)) return
      const { old, object } = change
      if (!isResized(old, object)) return
      this.#before.set(uid, old.spec.containers)
      this.#version++
    })
  }

  /** Increases with every change of {@link remade}. */
  get version(): number {
    return this.#version
  }

  /** The pod with the larger of its current and original requests, as it is recreated with the original ones. */
  remade(pod: Pod): Pod {
    if (this.#before.size === 0) return pod
    const before = this.#before.get(pod.metadata.uid ?? '')
    if (before === undefined) return pod
    const known = this.#specs.get(pod.spec)
    const spec = known?.before === before ? known.spec : withLarger(pod.spec, before)
    this.#specs.set(pod.spec, { before, spec })
    return { ...pod, spec }
  }
}

/** Whether requests of a bound pod have changed; pods may be malformed. */
function isResized(old: Pod, now: Pod): boolean {
  const [before, after] = [old.spec as PodSpec | undefined, now.spec as PodSpec | undefined]
  if (before?.containers === after?.containers || (after?.nodeName ?? '') === '') return false
  if (!Array.isArray(before?.containers) || !Array.isArray(after?.containers)) return false
  const requests = ({ containers }: PodSpec) =>
    JSON.stringify(containers.map(({ name, resources }) => [name, resources?.requests]))
  return requests(before) !== requests(after)
}

function withLarger(spec: PodSpec, before: readonly Container[]): PodSpec {
  const known = new Map(before.map(({ name, resources }) => [name, resources?.requests ?? {}]))
  const larger = (container: Container): Container => {
    const { name, resources } = container
    const requests = largerOf(resources?.requests ?? {}, known.get(name) ?? {})
    return { ...container, resources: { ...resources, requests } }
  }
  return { ...spec, containers: spec.containers.map(larger) }
}

function largerOf(a: ResourceList, b: ResourceList): ResourceList {
  const missing = Object.entries(b).filter(
    ([name, amount]) => parseResource(name, amount) > parseResource(name, ownValue(a, name) ?? '0'),
  )
  return { ...a, ...Object.fromEntries(missing) }
}
