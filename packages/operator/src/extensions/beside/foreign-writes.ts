/**
 * Recognizes writes of another controller by the managed fields of NodeClaims and NodePools (adoption.md 2). Karpenter and
 * Tenon both write as `karpenter`, so a write of that name is foreign only if this process sent none that explains it.
 */
import { isRecord, type KubeObject } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'

/** A write that this process did not make. Times are in Unix milliseconds of the API server. */
export interface ForeignWrite {
  readonly manager: string
  readonly atMs: number
  readonly verb: 'created' | 'wrote the status of'
  /** Such as `NodeClaim default-x2b4q`. */
  readonly object: string
}

/** When each field manager last wrote the status. */
export type StatusTimes = ReadonlyMap<string, number>

/** Others may write conditions, or what a person wants, and launch nothing. */
const autoscalers = /karpenter|autoscal/i

interface Entry {
  readonly manager: string
  readonly isStatus: boolean
  readonly atMs: number
}

/** Those of autoscalers; what cannot be read proves nothing. */
function entriesOf({ metadata }: KubeObject): readonly Entry[] {
  const entries: unknown = isRecord(metadata) ? metadata.managedFields : undefined
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown) => {
    if (!isRecord(entry)) return []
    const { manager, time, subresource } = entry
    if (typeof manager !== 'string' || typeof time !== 'string' || !autoscalers.test(manager)) return []
    const atMs = Date.parse(time)
    return Number.isNaN(atMs) ? [] : [{ manager, isStatus: subresource === 'status', atMs }]
  })
}

export function statusTimes(object: KubeObject): StatusTimes {
  return new Map(
    entriesOf(object).flatMap(({ manager, isStatus, atMs }) => (isStatus ? [[manager, atMs]] : [])),
  )
}

/** The autoscalers that wrote the status of an object since the state with the times `before`. */
export function statusWrites(
  kind: string,
  name: string,
  times: StatusTimes,
  before: StatusTimes,
): readonly ForeignWrite[] {
  return [...times]
    .filter(([manager, atMs]) => atMs > (before.get(manager) ?? Number.NEGATIVE_INFINITY))
    .map(([manager, atMs]) => ({ manager, atMs, verb: 'wrote the status of', object: `${kind} ${name}` }))
}

/** The last write of an autoscaler to the status of NodeClaims; undefined without any since `sinceMs`. */
export function latestForeignWrite(claims: readonly KubeObject[], sinceMs: number): ForeignWrite | undefined {
  const writes = claims.flatMap((claim) =>
    statusWrites('NodeClaim', claim.metadata.name, statusTimes(claim), new Map()),
  )
  return writes.filter(({ atMs }) => atMs >= sinceMs).toSorted((one, other) => other.atMs - one.atMs)[0]
}

/** Such as `karpenter created NodeClaim default-x2b4q at 2026-01-01T12:00:00Z`. */
export function writeText({ manager, verb, object, atMs }: ForeignWrite): string {
  return `${manager} ${verb} ${object} at ${rfc3339(atMs)}`
}

/** Why a controller stands back: the same words in log, lease and preflight. */
export function standingBackText(write: ForeignWrite): string {
  return `another controller serves the same NodePools: ${writeText(write)}; Tenon only observes until nothing has been written for 10 min`
}

/** The controller that created a NodeClaim, or undefined if a person may have. */
export function creatorOf(claim: KubeObject): ForeignWrite | undefined {
  const creator = entriesOf(claim).find(({ isStatus }) => !isStatus)
  if (creator === undefined) return undefined
  const { manager, atMs } = creator
  return { manager, atMs, verb: 'created', object: `NodeClaim ${claim.metadata.name}` }
}
