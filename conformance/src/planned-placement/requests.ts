/** Counts the operator's requests to the API server by kind, verb and status. */
import type { RequestSample } from '@tenon/kube'

/** One kind of request with one status, and how often it occurred. */
export interface RequestCount {
  /** Such as `PATCH pods/status`. */
  readonly what: string
  /** HTTP status; 0 without a response. */
  readonly status: number
  readonly count: number
  /** Average duration. */
  readonly meanMs: number
}

/** Counts requests from its creation, or from the last {@link reset}, on. */
export class RequestCounts {
  readonly #sums = new Map<string, { count: number; durationMs: number }>()

  /** To be passed to the client. */
  readonly onRequest = ({ method, path, status, durationMs }: RequestSample): void => {
    const key = `${method} ${resourceOf(path)} ${status}`
    const sum = this.#sums.get(key) ?? { count: 0, durationMs: 0 }
    this.#sums.set(key, { count: sum.count + 1, durationMs: sum.durationMs + durationMs })
  }

  reset(): void {
    this.#sums.clear()
  }

  /** Most frequent first. */
  get counts(): readonly RequestCount[] {
    return Array.from(this.#sums, ([key, { count, durationMs }]) => {
      const at = key.lastIndexOf(' ')
      const meanMs = Math.round(durationMs / count)
      return { what: key.slice(0, at), status: Number(key.slice(at + 1)), count, meanMs }
    }).toSorted((a, b) => b.count - a.count)
  }
}

/** `pods/status` of the path of a pod's status; the path itself if it names no resource. */
function resourceOf(path: string): string {
  const [, ...parts] = (path.split('?')[0] ?? '').split('/')
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const isNamespaced = rest[0] === 'namespaces' && rest.length > 2
  const [plural, , subresource] = isNamespaced ? rest.slice(2) : rest
  if (plural === undefined) return path
  return subresource === undefined ? plural : `${plural}/${subresource}`
}
