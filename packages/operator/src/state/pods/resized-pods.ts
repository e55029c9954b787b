/** What pods asked for before they were resized in place: what is made in their place asks for that again (buffers-and-dra.md 4). */
import {
  type Container,
  ownValue,
  parseResource,
  type Pod,
  type PodSpec,
  type ResourceList,
} from '@tenon/api'
import type { Change } from '@tenon/kube'

interface Pods {
  readonly onChange: (listener: (change: Change<Pod>) => void) => unknown
}

export class ResizedPods {
  /** By UID of the pod, its containers before its first resize. */
  readonly #before = new Map<string, readonly Container[]>()
  #version = 0
  /** Pods of one spec are made again alike. */
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

  /** A larger one after every change to what any pod is {@link remade} as. */
  get version(): number {
    return this.#version
  }

  /** The pod with the most of what it asks for and of what it will ask for once it is made again. */
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

/** Whether the pod has a node and some container asks for something else; misshapen pods come through here, too. */
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
