/** Judges a scheduling decision by Kubernetes' documented rules, slowly and without the engine's code. */
import type { Pod } from '@tenon/api'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { checkClaims, checkLimits, typesOf } from './claims.test-support.ts'
import { checkFailures, takenBack } from './failures.test-support.ts'
import { allocatableWith } from './launches.test-support.ts'
import { checkNodes, nameOf } from './nodes.test-support.ts'
import { demandOfAll, exclusiveClaimsOf } from './demands.test-support.ts'
import { checkSpread } from './spread.test-support.ts'
import { checkAffinity, checkAntiAffinity, locate } from './topology.test-support.ts'

/** Every rule that the decision breaks, naming the pod, the node or claim, and the rule. */
export function violationsOf(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  const accounting = checkAccounting(input, result)
  if (accounting.length > 0) return accounting
  const located = locate(input, result)
  // What was taken back at the very end leaves gaps that pods placed before could not know of.
  const isTakenBack = result.failures.some(({ reason }) => takenBack.has(reason.kind))
  return [
    ...checkNodes(input, result),
    ...checkClaims(input, result),
    ...checkLimits(input, result),
    ...checkExclusiveClaims(input, result),
    ...checkAntiAffinity(input, located),
    ...(isTakenBack ? [] : checkAffinity(input, located)),
    ...(isTakenBack ? [] : checkSpread(input, located)),
    ...checkFailures(input, result),
    ...checkPrice(input, result),
  ]
}

/** Every pod of the input is in exactly one list, and nobody else is in any. */
function checkAccounting(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  const listed: readonly Pod[] = [
    ...result.claims.flatMap((claim) => claim.pods),
    ...result.deferred.flatMap(({ claim }) => claim.pods),
    ...result.placements.map((placement) => placement.pod),
    ...result.failures.map((failure) => failure.pod),
    ...result.undecided,
  ]
  const times = new Map<string | undefined, number>()
  for (const { metadata } of listed) times.set(metadata.uid, (times.get(metadata.uid) ?? 0) + 1)
  const known = new Set(input.pods.map((pod) => pod.metadata.uid))
  return [
    ...input.pods
      .filter((pod) => times.get(pod.metadata.uid) !== 1)
      .map((pod) => `${nameOf(pod)}: is in ${times.get(pod.metadata.uid) ?? 0} lists of the result`),
    ...listed
      .filter((pod) => !known.has(pod.metadata.uid))
      .map((pod) => `${nameOf(pod)}: is in the result but not in the input`),
  ]
}

/** No two pods with a place use a claim that is for one alone. */
function checkExclusiveClaims(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  const served = [
    ...result.placements.map((placement) => placement.pod),
    ...result.claims.flatMap((claim) => claim.pods),
  ]
  const used = exclusiveClaimsOf(served, input)
  return used
    .filter((claim, index) => used.indexOf(claim) !== index)
    .map((claim) => `claim ${claim}: is for one pod alone and used by several`)
}

/** What a plan may cost that holds for any placement the Kubernetes scheduler may choose. */
const safety = 1.11
const nearly = 1e-9

/** With improvement on: totals add up, are no worse than first fit, and not too good to be true. */
function checkPrice(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  if (input.policy.improvement === undefined) return []
  const violations: string[] = []
  const sum = result.claims.reduce((so, claim) => so + (claim.pricePerHour ?? 0), 0)
  if (Math.abs(sum - result.pricePerHour) > nearly)
    violations.push(`price: claims cost ${sum}, the result says ${result.pricePerHour}`)
  const most = result.firstFitPricePerHour * (input.policy.improvement === 'free' ? safety : 1)
  if (result.pricePerHour > most + nearly)
    violations.push(`price: ${result.pricePerHour} is above first fit's ${result.firstFitPricePerHour}`)
  const bound = leastPrice(input, result)
  if (result.pricePerHour < bound - nearly)
    violations.push(`price: ${result.pricePerHour} is below what the cpu alone costs, ${bound}`)
  return violations
}

/** What the claims' cpu costs at the best price of a core anywhere. */
function leastPrice(input: SchedulingInput, result: SchedulingResult): number {
  const rates = result.claims
    .flatMap((claim) => typesOf(claim, input))
    .flatMap((type) =>
      type.offerings
        .filter((offering) => offering.available)
        .map((offering) => (offering.pricePerHour ?? 0) / (allocatableWith(type, offering)['cpu'] ?? 0)),
    )
  const cpu = demandOfAll(result.claims.flatMap((claim) => claim.pods))['cpu'] ?? 0
  return cpu === 0 ? 0 : cpu * Math.min(...rates)
}
