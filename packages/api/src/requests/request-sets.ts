/** The pod sets of a ProvisioningRequest (gangs.md 2.2). */
import { counted } from '../counted.ts'
import type { ProvisioningRequest } from '../karpenter/types.ts'
import type { PodTemplate, PodTemplateSpec } from '../objects.ts'
import { mostRequestPods, type RequestSet } from './request-pods.ts'

export type RequestSets =
  | { readonly kind: 'resolved'; readonly sets: readonly RequestSet[] }
  /** A template is missing or invalid. */
  | { readonly kind: 'failed'; readonly message: string }

/**
 * @param templateOf finds a PodTemplate in the request's namespace.
 * @param problemOf why a template is invalid, or undefined.
 */
export function requestSets(
  request: ProvisioningRequest,
  templateOf: (name: string) => PodTemplate | undefined,
  problemOf: (template: PodTemplateSpec) => string | undefined,
): RequestSets {
  const pods = requestedPods(request)
  if (pods > mostRequestPods)
    return { kind: 'failed', message: `it is for ${pods} pods; at most ${mostRequestPods} can be` }
  const sets: RequestSet[] = []
  const missing = new Set<string>()
  const problems = new Set<string>()
  for (const { podTemplateRef, count } of request.spec.podSets) {
    const found = templateOf(podTemplateRef.name)
    if (found === undefined) {
      missing.add(podTemplateRef.name)
      continue
    }
    const problem = problemOf(found.template)
    if (problem === undefined) sets.push({ template: found.template, count })
    else problems.add(`PodTemplate ${podTemplateRef.name} cannot be read: ${problem}`)
  }
  const texts = [...problems]
  if (missing.size > 0)
    texts.unshift(`${counted(missing.size, 'PodTemplate')} missing: ${[...missing].toSorted().join(', ')}`)
  return texts.length > 0 ? { kind: 'failed', message: texts.join('; ') } : { kind: 'resolved', sets }
}

/** How long after the creation of a request a missing PodTemplate is tolerated: another watch delivers it. */
export const templateWaitMs = 30_000

/** The total number of pods of all sets. */
export function requestedPods({ spec }: ProvisioningRequest): number {
  return spec.podSets.reduce((sum, { count }) => sum + count, 0)
}
