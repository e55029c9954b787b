/** Actions that somebody may ask for with --allow-actions: each is one command, which is shown before. */

/** An object by its kind and name. */
export interface Target {
  readonly kind: 'node' | 'nodeclaim' | 'nodepool' | 'pod'
  readonly namespace?: string
  readonly name: string
}

/** What keys and buttons ask for. */
export type Action =
  | { readonly kind: 'cordon' | 'uncordon' | 'drain'; readonly node: string }
  | { readonly kind: 'pause' | 'resume'; readonly nodePool?: string }
  | { readonly kind: 'delete'; readonly target: Target }

/** What can be asked for. Names are checked by whoever carries it out. */
export type ActionRequest = Action | { readonly kind: 'apply'; readonly manifest: string }

/** A request, and the command that the person has seen and agreed to; absent while only asked about. */
export interface AgreedRequest {
  readonly request: ActionRequest
  readonly agreed?: string
}

/** What would be done, by its command for a POSIX shell. */
export interface PlannedAction {
  readonly command: string
  /** Does what the command does, and no more. @returns what was done. @throws Error saying what was not. */
  run(signal: AbortSignal): Promise<string>
}

/** Carries actions out. */
export interface ActionPort {
  /** @throws Error saying why the request cannot be carried out. */
  plan(request: ActionRequest): Promise<PlannedAction>
}

/** @returns undefined for anything else. */
export function agreedRequestOf(value: unknown): AgreedRequest | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { agreed, request } = value as { readonly agreed?: unknown; readonly request?: unknown }
  const read = requestOf(request)
  if (read === undefined || !(agreed === undefined || typeof agreed === 'string')) return undefined
  return { request: read, ...(agreed !== undefined && { agreed }) }
}

function requestOf(value: unknown): ActionRequest | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, node, target, nodePool, manifest } = value as Readonly<Record<string, unknown>>
  switch (kind) {
    case 'cordon':
    case 'uncordon':
    case 'drain':
      return isName(node) ? { kind, node } : undefined
    case 'delete':
      return deletionOf(target)
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

/** The page deletes nothing but NodeClaims. */
function deletionOf(value: unknown): ActionRequest | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, name } = value as Readonly<Record<string, unknown>>
  return kind === 'nodeclaim' && isName(name) ? { kind: 'delete', target: { kind, name } } : undefined
}

/** What Kubernetes takes as a name; so nothing of it means anything to a shell. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(value)
}
