/** What a failed launch means for later launches (scheduling.md 13.3, reports-2.md 4). */
import type { LaunchScope, OfferingRef } from '@tenon/api'
import { type LaunchPlace, scopesOf } from '@tenon/engine'
import { isProviderError, type ProviderError } from '@tenon/provider'
import type { RefusedScope } from './offering-health.ts'

type Verdict =
  /** These fail again if they are tried again. */
  | {
      readonly kind: 'refused'
      readonly scopes: readonly RefusedScope[]
      /** The same claim may be launched with something else at once. */
      readonly isShort: boolean
      /** The instance type is a guess: a second type that fails shows that it is the node class. */
      readonly isGuess: boolean
    }
  /** It may have been chance, or the cloud; the claim tries again. */
  | { readonly kind: 'unclear' }
  /** The launch is not over. */
  | { readonly kind: 'underWay' }

/**
 * @param choice the offering: undefined while the types are unknown, `none` if the claim allows none of the NodePool's,
 * which says nothing about other claims.
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
  const { what: told, ...pause } = error.blames ?? {}
  // The claim is given up, so this is the last chance to blame something.
  const isGivenUp = isShort || error.kind === 'nodeClassNotReady'
  const what = told === undefined || (isGivenUp && told === 'cloud') ? whatOf(error.kind) : told
  // A claim that is given up has no launch to go on with; that says nothing about later ones.
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

/** The scope of one instance type with the node class of a place. */
export function typeScope(place: LaunchPlace, choice: OfferingRef): LaunchScope {
  return scopeOf('instanceType', place, choice)
}

/** The scope of the node class of a place. */
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
