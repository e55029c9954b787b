/** Requests to the API server, under the names that Karpenter's users chart (operations.md 9.4). */
import type { RequestSample } from '@tenon/kube'
import type { Counter, Histogram, Registry } from 'prom-client'
import { Families } from '../families.ts'
import { frameworkRows } from './framework-rows.ts'

/** What a path of the API names. */
interface Target {
  readonly group: string
  readonly version: string
  /** In the plural, as in the path. */
  readonly kind: string
  readonly name: string | undefined
  readonly subresource: string
}

/** Sub-paths of a namespace that are no collections in it. */
const namespaceSubresources = new Set(['status', 'finalize'])
const asksToWatch = /(?:^|&)watch(?:[=&]|$)/
/** What the code says when no answer came. */
const noAnswer = '<error>'

export class RequestMetrics {
  readonly #requests: Counter
  readonly #duration: Histogram

  constructor(registry: Registry) {
    const make = new Families(registry, frameworkRows)
    this.#requests = make.counter('client_go_request_total')
    this.#duration = make.histogram('client_go_request_duration_seconds')
  }

  readonly requested = ({ method, path, status, durationMs }: RequestSample): void => {
    this.#requests.inc({ code: status === 0 ? noAnswer : `${status}`, method })
    const [plain = '', query] = path.split('?')
    const target = targetOf(plain)
    if (target === undefined || (query !== undefined && asksToWatch.test(query))) return
    const { name, ...labels } = target
    this.#duration.observe({ verb: verbOf(method, name), ...labels }, durationMs / 1000)
  }
}

function verbOf(method: string, name: string | undefined): string {
  switch (method) {
    case 'POST':
      return 'CREATE'
    case 'GET':
      return name === undefined ? 'LIST' : 'GET'
    case 'PUT':
      return name === undefined ? 'CREATE' : 'UPDATE'
    default:
      return method
  }
}

/** Undefined for paths that are about no resource, such as `/version`. */
function targetOf(path: string): Target | undefined {
  const parts = path.split('/').slice(1)
  const root = parts.shift()
  if (root !== 'api' && root !== 'apis') return undefined
  const group = root === 'api' ? '' : (parts.shift() ?? '')
  const [version, ...rest] = parts
  const isInNamespace =
    rest[0] === 'namespaces' && rest.length > 2 && !namespaceSubresources.has(rest[2] ?? '')
  const [kind, name, ...sub] = isInNamespace ? rest.slice(2) : rest
  if (version === undefined || kind === undefined || kind === '') return undefined
  return { group, version, kind, name, subresource: sub.join('/') }
}
