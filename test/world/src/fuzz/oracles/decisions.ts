/** Properties of every decision. */
import type { Finding } from '../case.ts'

/** A decision about pods on an empty cluster, as plain data. */
export interface Decision {
  /** Number of pods. */
  readonly given: number
  readonly claims: readonly {
    readonly pods: readonly string[]
    readonly pricePerHour: number | undefined
    /** Number of remaining instance types. */
    readonly types: number
  }[]
  /** UIDs of pods without a claim. */
  readonly elsewhere: readonly string[]
  /** Whether the limits of a NodePool kept a pod from being placed. */
  readonly isAtLimits: boolean
  readonly pricePerHour: number
  /** Exceptions. */
  readonly faults: readonly string[]
}

const tiny = 1e-9

/** Every pod is placed at most once and accounted for; prices are numbers; nothing threw. */
export function soundness(decision: Decision, mode: string): readonly Finding[] {
  const found = (oracle: Finding['oracle'], text: string): Finding => ({
    oracle,
    text: `${mode}: ${text}`,
    atMs: 0,
  })
  const named = [...decision.claims.flatMap(({ pods }) => pods), ...decision.elsewhere]
  const prices = [decision.pricePerHour, ...decision.claims.map(({ pricePerHour }) => pricePerHour ?? 0)]
  return [
    ...decision.faults.map((fault) => found('noThrow', fault)),
    ...(new Set(named).size === decision.given && named.length === decision.given
      ? []
      : [
          found(
            'everyPodRuns',
            `of ${decision.given} pods the decision names ${new Set(named).size}, ${named.length} times`,
          ),
        ]),
    ...(prices.every((price) => Number.isFinite(price) && price >= 0)
      ? []
      : [found('noHigherPrice', `prices are not all numbers: ${prices.join(', ')}`)]),
    ...decision.claims
      .filter(({ types }) => types === 0)
      .map(({ pods }) => found('everyPodRuns', `a claim for ${pods.join(', ')} has no type`)),
  ]
}

/** An improved plan costs no more and places no fewer pods. */
export function improvement(improved: Decision, plain: Decision): readonly Finding[] {
  const [more, fewer] = [improved, plain].map(({ elsewhere }) => elsewhere.length)
  if ((more ?? 0) > (fewer ?? 0)) {
    const text = `with improvements ${more} pods are left out, without ${fewer}`
    return [{ oracle: 'everyPodRuns', text, atMs: 0 }]
  }
  const isPriced = [...improved.claims, ...plain.claims].every(
    ({ pricePerHour }) => pricePerHour !== undefined,
  )
  if (!isPriced || more !== fewer || improved.pricePerHour <= plain.pricePerHour * (1 + tiny)) return []
  const text = `the plan costs ${improved.pricePerHour} an hour, plain first fit ${plain.pricePerHour}`
  return [{ oracle: 'noHigherPrice', text, atMs: 0 }]
}

/**
 * Renaming zones does not change how many pods are placed, unless pods compete for the rest of a NodePool's
 * limits, which first fit gives to the first pod. The price may differ slightly: ties are broken by name, and a
 * pod that is bound to a zone may or may not share a node.
 */
export function renaming(one: Decision, other: Decision): readonly Finding[] {
  const [mine, theirs] = [one.elsewhere.length, other.elsewhere.length]
  if (mine === theirs || one.isAtLimits || other.isAtLimits) return []
  const text = `with the zones as they are ${mine} pods are left out, with other names ${theirs}`
  return [{ oracle: 'sameUnderOtherNames', text, atMs: 0 }]
}
