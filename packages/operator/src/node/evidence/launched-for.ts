/** What nodes were launched for, as their claims tell it, for the process after the one that launched them. */
import type { NodeClaim, Pod } from '@tenon/api'
import { workloadOf } from '../../state/pods/workloads.ts'

/** On NodeClaims: the workloads each was launched for, as `KEY=PODS`, separated by commas. */
const launchedForAnnotation = 'tenon.sh/launched-for'
/** Bounds the annotation to 4 kB; a node for so many workloads is not useless for all of them. */
const maxWorkloads = 200

/** The annotation of a claim for these pods, as the API server has them; none for too many workloads. */
export function launchedFor(pods: readonly Pod[]): Readonly<Record<string, string>> {
  const counts = new Map<string, number>()
  for (const pod of pods) {
    const key = workloadOf(pod)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  if (counts.size > maxWorkloads) return {}
  const parts = [...counts].map(([key, count]) => `${key}=${count}`).toSorted()
  return { [launchedForAnnotation]: parts.join(',') }
}

/** By key of a workload, for how many of its pods the claim was launched. */
export function workloadsOf({ metadata }: NodeClaim): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const part of (metadata.annotations?.[launchedForAnnotation] ?? '').split(',')) {
    const [key = '', count = ''] = part.split('=')
    if (key !== '' && Number(count) > 0) counts.set(key, Number(count))
  }
  return counts
}
