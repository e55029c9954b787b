import { setOwn } from '@tenon/api'
import type { HttpRequest } from '@tenon/runtime'
import type { Route } from './call.ts'
import { invalid, refused } from './refusal.ts'

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export type Match =
  | {
      readonly kind: 'route'
      readonly route: Route
      readonly parameters: Readonly<Record<string, string>>
      readonly query: URLSearchParams
    }
  | { readonly kind: 'unknownPath' }
  | { readonly kind: 'wrongMethod' }

/** Prefix of all paths. */
const root = '/v2'

/** `instance` of `/instance/{id}:reboot`. */
function firstPartOf(path: string): string {
  if (!path.startsWith('/')) return ''
  const [slash, colon] = [path.indexOf('/', 1), path.indexOf(':', 1)]
  const end = slash < 0 || (colon >= 0 && colon < slash) ? colon : slash
  return end < 0 ? path.slice(1) : path.slice(1, end)
}

interface CompiledRoute {
  readonly route: Route
  readonly pattern: RegExp
}

/** Finds the operation of a method and path. */
export class Router {
  /** By the first part of their paths, which is never a parameter. */
  readonly #routes = new Map<string, CompiledRoute[]>()

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const first = firstPartOf(route.path)
      const others = this.#routes.get(first) ?? []
      this.#routes.set(first, [...others, { route, pattern: patternOf(route.path) }])
    }
  }

  match(method: string, path: string): Match {
    const [rawPath = '', ...rest] = path.split('?')
    const decoded = decodePath(rawPath)
    let pathKnown = false
    const candidates =
      decoded === undefined ? undefined : this.#routes.get(firstPartOf(decoded.slice(root.length)))
    for (const { route, pattern } of candidates ?? []) {
      const found = pattern.exec(decoded ?? '')
      if (found === null) continue
      pathKnown = true
      if (route.method !== method) continue
      return {
        kind: 'route',
        route,
        parameters: { ...found.groups },
        query: new URLSearchParams(rest.join('?')),
      }
    }
    return { kind: pathKnown ? 'wrongMethod' : 'unknownPath' }
  }
}

/** The parameters by their API names; ids must be UUIDs. */
export function checkedParameters(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const checked: Record<string, string> = {}
  for (const [group, value] of Object.entries(parameters)) {
    const name = group.replaceAll('_', '-')
    if (name.endsWith('id') && !uuidPattern.test(value)) throw invalid([`${name} must be a UUID`])
    setOwn(checked, name, value)
  }
  return checked
}

/** The JSON object of a request; ignored for an operation without a body. */
export function bodyOf(route: Route, request: HttpRequest): Record<string, unknown> {
  if (route.body === undefined) return {}
  const raw = request.body ?? ''
  const text = typeof raw === 'string' ? raw : new TextDecoder().decode(raw)
  if (text === '') throw invalid(['a body is required'])
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw refused(400, 'the body is not JSON')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw invalid(['the body must be an object'])
  }
  return parsed as Record<string, unknown>
}

function patternOf(path: string): RegExp {
  const groups = path.replace(
    /\{([a-z-]+)\}/g,
    (_, name: string) => `(?<${name.replaceAll('-', '_')}>[^/:]+)`,
  )
  return new RegExp(`^${root}${groups}$`)
}

function decodePath(path: string): string | undefined {
  if (!path.includes('%')) return path
  try {
    return path.split('/').map(decodeURIComponent).join('/')
  } catch {
    return undefined
  }
}
