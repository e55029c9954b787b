/**
 * What happens next to a pod that has no node: one answer for events, `tenon explain`, `tenon simulate`, the page, the
 * viewer and metrics (page.md 1).
 */
import type { Pod } from '@tenon/api'
import {
  type Deferral,
  type NewClaim,
  type PodReason,
  renderDeviceOffer,
  renderPodReason,
  type SchedulingResult,
} from '@tenon/engine'
import type { UnreadyPool } from './input/eligible-pools.ts'
import type { GatheredInput } from './input/scheduling-input.ts'

/**
 * `waits`: it fits nowhere. `deferred`: its node is launched later. `newNode`, `node`: it gets a new node, or one that
 * exists or is being launched. `leftOut`: it is not part of decisions. `undecided`: the decision timed out.
 */
export type OutlookCase = 'waits' | 'deferred' | 'newNode' | 'node' | 'leftOut' | 'undecided'

export type OutlookCode =
  | PodReason['kind']
  | Deferral['kind']
  | 'claimRefused'
  | 'leftOut'
  | 'undecided'
  | 'placed'
  | 'newNode'

/** Every code there is, with its case. */
export const outlookCases: Readonly<Record<OutlookCode, OutlookCase>> = {
  noPools: 'waits',
  noTypesInPools: 'waits',
  noTemplate: 'waits',
  truncationBrokeMinValues: 'waits',
  reservationDeferred: 'waits',
  uninitializedNode: 'waits',
  resourceClaims: 'waits',
  devices: 'waits',
  extendedResources: 'waits',
  exclusiveClaim: 'waits',
  malformed: 'waits',
  podGroupShort: 'waits',
  podGroup: 'waits',
  podGroupTopology: 'waits',
  unexplained: 'waits',
  undecidable: 'waits',
  offeringsOnTrial: 'deferred',
  limitReserved: 'deferred',
  quotaReserved: 'deferred',
  claimRefused: 'leftOut',
  leftOut: 'leftOut',
  undecided: 'undecided',
  placed: 'node',
  newNode: 'newNode',
}

export interface PodOutlook {
  readonly case: OutlookCase
  readonly code: OutlookCode
  /** One sentence without a full stop. */
  readonly summary: string
  /** When it is tried again if nothing changes before, Unix milliseconds; absent if that is not known. */
  readonly untilMs?: number
  /** Only of a pod that waits. */
  readonly reason?: PodReason
}

interface Decided {
  readonly input: Pick<GatheredInput, 'ignored' | 'refused'>
  readonly result: Pick<SchedulingResult, 'failures' | 'placements' | 'undecided'> & {
    readonly claims: readonly DecidedClaim[]
    readonly deferred: readonly { readonly claim: DecidedClaim; readonly because: Deferral }[]
  }
}

type DecidedClaim = Pick<NewClaim, 'instanceTypes' | 'nodePool' | 'pods'>

/** What a decision means for each of its pods, by UID; rendered when it is read. */
export function podOutlooks(
  { input, result }: Decided,
  unready: readonly UnreadyPool[],
): ReadonlyMap<string | undefined, () => PodOutlook> {
  const outlooks = new Map<string | undefined, () => PodOutlook>()
  const tell = (pods: readonly Pod[], outlook: () => PodOutlook) => {
    for (const { metadata } of pods) outlooks.set(metadata.uid, outlook)
  }
  tell(result.undecided, () => outlookOf('undecided', 'The decision ended before it came to this pod'))
  for (const { pod, reason } of input.ignored)
    tell([pod], () => outlookOf('leftOut', `Nothing is launched for it: ${reason}`))
  for (const { pod, reason, untilMs } of input.refused)
    tell([pod], () => ({
      ...outlookOf(
        untilMs === undefined ? 'leftOut' : 'claimRefused',
        `Nothing is launched for it: ${reason}`,
      ),
      ...(untilMs !== undefined && { untilMs }),
    }))
  for (const { pod, node } of result.placements)
    tell([pod], () => outlookOf('placed', `It has a place on node ${node}`))
  for (const { claim, because } of result.deferred)
    tell(claim.pods, () => outlookOf(because.kind, deferralText(because, claim.nodePool)))
  for (const { nodePool, instanceTypes, pods } of result.claims)
    tell(pods, () =>
      outlookOf(
        'newNode',
        `The next decision launches a node of NodePool ${nodePool} for it (${instanceTypes[0] ?? ''})`,
      ),
    )
  for (const { pod, reason } of result.failures) tell([pod], () => waiting(reason, unready))
  return outlooks
}

/** Pods without a place by code, for metrics: nothing is rendered. */
export function waitingByCode({ input, result }: Decided): ReadonlyMap<OutlookCode, number> {
  const counts = new Map<OutlookCode, number>()
  const count = (code: OutlookCode, pods: number) => {
    if (pods > 0) counts.set(code, (counts.get(code) ?? 0) + pods)
  }
  count('undecided', result.undecided.length)
  count('leftOut', input.ignored.length)
  for (const { untilMs } of input.refused) count(untilMs === undefined ? 'leftOut' : 'claimRefused', 1)
  for (const { claim, because } of result.deferred) count(because.kind, claim.pods.length)
  for (const { pods } of result.claims) count('newNode', pods.length)
  for (const { reason } of result.failures) count(reason.kind, 1)
  return counts
}

function outlookOf(code: OutlookCode, summary: string): PodOutlook {
  return { case: outlookCases[code], code, summary }
}

function waiting(reason: PodReason, unready: readonly UnreadyPool[]): PodOutlook {
  const untilMs = retryOf(reason)
  return {
    ...outlookOf(reason.kind, sentence(waitingText(reason, unready))),
    ...(untilMs !== undefined && { untilMs }),
    reason,
  }
}

function waitingText(reason: PodReason, unready: readonly UnreadyPool[]): string {
  if (reason.kind === 'noPools') return `it waits: ${noPoolsText(unready)}`
  if (reason.kind !== 'noTemplate') return `it waits: ${renderPodReason(reason)}`
  const { devices = [] } = reason
  return [...devices.map(renderDeviceOffer), 'no NodePool can launch a node for it'].join('; ')
}

const shownPools = 3

/** Why no NodePool launches anything, as a clause. */
export function noPoolsText(unready: readonly UnreadyPool[]): string {
  if (unready.length === 0) return renderPodReason({ kind: 'noPools' })
  const shown = unready
    .slice(0, shownPools)
    .map(({ nodePool, because }) => `NodePool ${nodePool}: ${because}`)
  const rest = unready.length - shown.length
  return `no NodePool launches nodes now (${shown.join('; ')}${rest > 0 ? `; and ${rest} more` : ''})`
}

/** When the first of the offerings that would do is tried again. */
function retryOf(reason: PodReason): number | undefined {
  if (reason.kind === 'podGroup') return retryOf(reason.because)
  if (reason.kind !== 'noTemplate') return undefined
  const times = reason.templates.flatMap(({ reason: why }) =>
    why.kind === 'unavailable'
      ? why.offerings.flatMap(({ unavailability }) => unavailability?.untilMs ?? [])
      : [],
  )
  return times.length === 0 ? undefined : Math.min(...times)
}

function deferralText(because: Deferral, nodePool: string): string {
  switch (because.kind) {
    case 'offeringsOnTrial':
      return `Its node of NodePool ${nodePool} waits for another launch to find out whether the offering can be bought again`
    case 'limitReserved':
      return `Nodes on their way take what is left of the limit of ${because.limit} of NodePool ${nodePool}`
    case 'quotaReserved':
      return `Nodes on their way take what is left of ${because.limit} of CapacityQuota ${because.quota}`
  }
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
