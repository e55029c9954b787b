/** What a failed launch means for later launches (scheduling.md 13.3, reports-2.md 4). */
import type { LaunchScope, OfferingRef } from '@tenon/api'
import { type LaunchPlace, scopesOf } from '@tenon/engine'
import { isProviderError, type ProviderError } from '@tenon/provider'
import type { RefusedScope } from './offering-health.ts'

type Verdict =
  /** Another attempt with one of these would fail, too. */
  | {
      readonly kind: 'refused'
      readonly scopes: readonly RefusedScope[]
      /** The claim may be launched with another offering at once. */
      readonly isShort: boolean
      /** The error does not say that it is about the type. If a second type fails, it is about the node class. */
      readonly isGuess: boolean
    }
  /** The cause may be the cloud; the claim is tried again. */
  | { readonly kind: 'unclear' }
  /** The launch is not over. */
  | { readonly kind: 'underWay' }

/**
 * @param choice the offering; undefined if the types are unknown, `none` if the claim allows none of its NodePool, which
 * says nothing about other claims.
 */
export function verdictOn(
  error: unknown,
  place: LaunchPlace,
  choice: OfferingRef | 'none' | undefined,
): Verdict {
  if (!isProviderError(error)) return { kind: 'unclear' }
  const isShort = error.kind === 'insufficientCapacity'
  if (error.offerings.length > 0) return { kind: 'refused', scopes: error.offerings, isShort, isGuess: false }
  if (choice === 'none' && error.blames === undefined)
    return { kind: 'refused', scopes: [], isShort: false, isGuess: false }
  const { what: blamed, ...pause } = error.blames ?? {}
  // The claim will be deleted, so nothing is blamed later.
  const isGivenUp = isShort || error.kind === 'nodeClassNotReady'
  const what = blamed === undefined || (isGivenUp && blamed === 'cloud') ? whatOf(error.kind) : blamed
  // Without its claim, a launch cannot continue; that says nothing about later launches.
  if (what === 'nothing')
    return isGivenUp ? { kind: 'refused', scopes: [], isShort: false, isGuess: false } : { kind: 'underWay' }
  if (what === 'cloud') return { kind: 'unclear' }
  const scope = scopeOf(what, place, choice === 'none' ? undefined : choice)
  return {
    kind: 'refused',
    scopes: [{ ...scope, ...pause }],
    isShort: isShort && what === 'instanceType',
    isGuess: error.blames === undefined && what === 'instanceType',
  }
}

/** Whether the cloud named the offerings that it refused. */
export function isOfOfferings(error: unknown): error is ProviderError {
  return isProviderError(error) && error.offerings.length > 0
}

export function typeScope(place: LaunchPlace, choice: OfferingRef): LaunchScope {
  return scopeOf('instanceType', place, choice)
}

export function classScope(place: LaunchPlace): LaunchScope {
  return scopeOf('nodeClass', place, undefined)
}

function whatOf(kind: string): 'instanceType' | 'nodeClass' | 'cloud' {
  switch (kind) {
    case 'insufficientCapacity':
    case 'create':
    case 'unauthorized':
      return 'instanceType'
    case 'nodeClassNotReady':
      return 'nodeClass'
    default:
      return 'cloud'
  }
}

function scopeOf(
  what: 'instanceType' | 'nodeClass' | 'nodePool',
  place: LaunchPlace,
  choice: OfferingRef | undefined,
): LaunchScope {
  const every = { instanceType: '', zone: '', capacityType: '' }
  const [pool, nodeClass, type] = scopesOf(choice ?? every, place) as [LaunchScope, LaunchScope, LaunchScope]
  if (what === 'nodePool') return pool
  return what === 'nodeClass' || choice === undefined ? nodeClass : type
}
