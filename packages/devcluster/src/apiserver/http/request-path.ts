import { badRequest } from './status.ts'

/** The parts of a resource path. */
export interface ResourcePath {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
}

/**
 * Parses `/api/v1/…` and `/apis/GROUP/VERSION/…` paths; `undefined` for all others.
 * @throws ApiError 400 for invalid escapes.
 */
export function parseResourcePath(pathname: string): ResourcePath | undefined {
  const given = pathname.split('/').filter((part) => part !== '')
  const parts = pathname.includes('%') ? given.map(decoded) : given
  const [root] = parts
  if (root === 'api' && parts.length >= 3) return resourceOf('', parts[1] as string, parts.slice(2))
  if (root === 'apis' && parts.length >= 4)
    return resourceOf(parts[1] as string, parts[2] as string, parts.slice(3))
  return undefined
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw badRequest(`invalid URL escape in ${JSON.stringify(part)}`)
  }
}

/** Subresources of namespaces, which look like namespaced resources. */
const namespaceSubresources = new Set(['status', 'finalize'])

function resourceOf(group: string, version: string, rest: readonly string[]): ResourcePath | undefined {
  const scoped = rest[0] === 'namespaces' && rest.length >= 3 && !namespaceSubresources.has(rest[2] as string)
  const [plural, name, subresource, ...tail] = scoped ? rest.slice(2) : rest
  if (plural === undefined || (tail.length > 0 && subresource !== 'proxy')) return undefined
  return { group, version, plural, namespace: scoped ? rest[1] : undefined, name, subresource }
}
