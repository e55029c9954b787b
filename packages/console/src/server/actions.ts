/** Actions that the page may ask for with --allow-actions: each is one command, which is shown before. */

/** What can be asked for. Names are checked by whoever carries it out. */
export type ActionRequest =
  | { readonly kind: 'cordon' | 'uncordon' | 'drain'; readonly node: string }
  | { readonly kind: 'deleteNodeClaim'; readonly nodeClaim: string }
  | { readonly kind: 'pause' | 'resume'; readonly nodePool?: string }
  | { readonly kind: 'apply'; readonly manifest: string }

/** A request, and the command that the person has seen and agreed to; absent while only asked about. */
export interface Action {
  readonly request: ActionRequest
  readonly agreed?: string
}

/** Carries actions out. */
export interface ActionPort {
  /** For a POSIX shell; what {@link run} does is what it does. */
  commandOf(request: ActionRequest): string
  /** @returns what was done, one sentence. @throws Error saying why nothing was. */
  run(request: ActionRequest, signal: AbortSignal): Promise<string>
}

/** @returns undefined for anything else. */
export function actionOf(value: unknown): Action | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { agreed, request } = value as { readonly agreed?: unknown; readonly request?: unknown }
  const read = requestOf(request)
  if (read === undefined || !(agreed === undefined || typeof agreed === 'string')) return undefined
  return { request: read, ...(agreed !== undefined && { agreed }) }
}

function requestOf(value: unknown): ActionRequest | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, node, nodeClaim, nodePool, manifest } = value as Readonly<Record<string, unknown>>
  switch (kind) {
    case 'cordon':
    case 'uncordon':
    case 'drain':
      return isName(node) ? { kind, node } : undefined
    case 'deleteNodeClaim':
      return isName(nodeClaim) ? { kind, nodeClaim } : undefined
    case 'pause':
    case 'resume':
      if (nodePool === undefined) return { kind }
      return isName(nodePool) ? { kind, nodePool } : undefined
    case 'apply':
      return typeof manifest === 'string' ? { kind, manifest } : undefined
    default:
      return undefined
  }
}

/** What Kubernetes takes as a name; so nothing of it means anything to a shell. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(value)
}
