import type { Pod } from '@tenon/api'
import { resolveIntOrPercent } from '../objects/int-or-percent.ts'
import { availableInMs, isTerminating } from '../objects/pods.ts'
import { revisionHashLabel } from '../objects/revision-history.ts'
import type { DaemonSetObject } from '../objects/workloads.ts'

/** One step of a rolling update. */
export interface RolloutStep {
  readonly remove: Pod[]
  /** Nodes that get a pod of the new revision besides the old one (surge). */
  readonly surge: string[]
}

interface NodePods {
  readonly updated: Pod | undefined
  readonly outdated: Pod | undefined
}

/** The next step of a rolling update, within `maxUnavailable` or `maxSurge` of the desired nodes. */
export function rolloutStep(
  set: DaemonSetObject,
  podsByNode: ReadonlyMap<string, readonly Pod[]>,
  desired: number,
  hash: string,
  nowMs: number,
): RolloutStep {
  const rolling = set.spec.updateStrategy?.rollingUpdate
  const maxSurge = resolveIntOrPercent(rolling?.maxSurge ?? 0, desired, 'up')
  const unavailable = resolveIntOrPercent(rolling?.maxUnavailable ?? 1, desired, 'up')
  const maxUnavailable = maxSurge === 0 ? Math.max(1, unavailable) : unavailable
  const isAvailable = (pod: Pod | undefined) =>
    pod !== undefined && !isTerminating(pod) && availableInMs(pod, set.spec.minReadySeconds ?? 0, nowMs) === 0
  const nodes = [...podsByNode].map(([node, pods]) => ({ node, ...splitByRevision(pods, hash) }))
  if (maxSurge > 0) return surgeStep(nodes, maxSurge, isAvailable)
  const missing = desired - nodes.filter((node) => isAvailable(node.updated ?? node.outdated)).length
  const outdated = nodes
    .map((node) => node.outdated)
    .filter((pod) => pod !== undefined && !isTerminating(pod)) as Pod[]
  const broken = outdated.filter((pod) => !isAvailable(pod))
  const working = outdated.filter((pod) => isAvailable(pod))
  // Replacing an unavailable pod does not reduce availability.
  return { remove: [...broken, ...working.slice(0, Math.max(0, maxUnavailable - missing))], surge: [] }
}

function surgeStep(
  nodes: readonly (NodePods & { readonly node: string })[],
  maxSurge: number,
  isAvailable: (pod: Pod | undefined) => boolean,
): RolloutStep {
  const remove: Pod[] = []
  const candidates: string[] = []
  let surging = 0
  for (const { node, updated, outdated } of nodes) {
    if (outdated === undefined || isTerminating(outdated)) continue
    if (updated === undefined) {
      if (isAvailable(outdated)) candidates.push(node)
      else remove.push(outdated)
    } else if (isAvailable(updated)) {
      remove.push(outdated)
    } else {
      surging++
    }
  }
  return { remove, surge: candidates.slice(0, Math.max(0, maxSurge - surging)) }
}

function splitByRevision(pods: readonly Pod[], hash: string): NodePods {
  const isUpdated = (pod: Pod) => pod.metadata.labels?.[revisionHashLabel] === hash
  return {
    updated: pods.find((pod) => isUpdated(pod) && !isTerminating(pod)) ?? pods.find(isUpdated),
    outdated: pods.find((pod) => !isUpdated(pod)),
  }
}
