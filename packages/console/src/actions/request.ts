/** Actions that --allow-actions enables. Each is one command, which is shown before it runs. */

export interface Target {
  readonly kind: 'node' | 'nodeclaim' | 'nodepool' | 'pod'
  readonly namespace?: string
  readonly name: string
}

export type Action =
  | { readonly kind: 'cordon' | 'uncordon' | 'drain'; readonly node: string }
  | { readonly kind: 'pause' | 'resume'; readonly nodePool?: string }
  | { readonly kind: 'delete'; readonly target: Target }

/** Names are validated by whoever carries out the action. */
export type ActionRequest = Action | { readonly kind: 'apply'; readonly manifest: string }

/** A request, and the command that the user has confirmed; absent while the command is only asked for. */
export interface AgreedRequest {
  readonly request: ActionRequest
  readonly agreed?: string
}

/** An action as a command for a POSIX shell. */
export interface PlannedAction {
  readonly command: string
  /**
   * Does exactly what the command does.
   * @returns what was done.
   * @throws Error if it was not.
   */
  run(signal: AbortSignal): Promise<string>
}

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

/** The page only deletes NodeClaims. */
function deletionOf(value: unknown): ActionRequest | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, name } = value as Readonly<Record<string, unknown>>
  return kind === 'nodeclaim' && isName(name) ? { kind: 'delete', target: { kind, name } } : undefined
}

/** Whether it is a valid Kubernetes name, which also needs no shell quoting. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(value)
}
