import { type Container, ownValue, type Pod, quantityNanos } from '@tenon/api'

/** `tenon.sh/cpu-usage: 80%` of the pod's requests, or an amount per container (`250m`). */
const annotationOf = (resource: string) => `tenon.sh/${resource}-usage`
/** The usage of a pod without the annotation. */
const usualShare = 0.5
/** The usage of a container without requests, in billionths: 10m of CPU, 32Mi of memory. */
const idle: ReadonlyMap<string, number> = new Map([
  ['cpu', 1e7],
  ['memory', 32 * 2 ** 20 * 1e9],
])

/** The request of a container of the pod, in billionths; undefined if it has none. */
export function requestOf(container: Container, resource: string): number | undefined {
  const requests = container.resources?.requests
  if (requests === undefined || !Object.hasOwn(requests, resource)) return undefined
  const nanos = quantityNanos(ownValue(requests, resource) ?? '')
  return nanos === undefined ? undefined : Number(nanos)
}

/** The usage of a running container, in billionths; undefined for other resources. */
export function usageOf(pod: Pod, container: Container, resource: string): number | undefined {
  const nothing = idle.get(resource)
  if (nothing === undefined) return undefined
  const said = ownValue(pod.metadata.annotations, annotationOf(resource))
  const request = requestOf(container, resource)
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(said ?? '')?.[1]
  if (percent !== undefined) return request === undefined ? nothing : (request * Number(percent)) / 100
  const amount = said === undefined ? undefined : quantityNanos(said)
  if (amount !== undefined && amount >= 0n) return Number(amount)
  return request === undefined ? nothing : request * usualShare
}
