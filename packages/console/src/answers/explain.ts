/** Explanations as `tenon explain` prints them (ask.md 2). */
import type { Pod } from '@tenon/api'
import type { ExplainedPod, Snapshot } from '@tenon/ask'
import {
  explainNode,
  explainNodePool,
  gathered,
  nodePoolText,
  nodeText,
  patchCommand,
  patchOf,
  PodExplainer,
  podText,
  Study,
} from '@tenon/ask/explain'

/** A change that would let a pod run. */
export interface MissAnswer {
  readonly words: string
  readonly field: string
  /** How many of the workload's pending pods would run. */
  readonly running: number
  readonly waiting: number
  readonly place: string
  /** Absent if unknown. */
  readonly pricePerHour?: number
  /** Absent if no patch can do it. */
  readonly command?: string
}

export interface Explained {
  readonly lines: readonly string[]
  /** As `tenon explain -o json` prints it. */
  readonly explanation: object
  readonly misses?: readonly MissAnswer[]
}

export interface PendingGroup {
  readonly code: string
  readonly pods: number
  readonly workloads: readonly { readonly name: string; readonly pods: number }[]
  readonly summary: string
  readonly reasons: readonly string[]
  /** The pod whose explanation stands for the group. */
  readonly example: { readonly namespace: string; readonly name: string }
}

export interface PendingAnswer {
  /** RFC 3339. */
  readonly asOf: string
  readonly currency?: string
  readonly groups: readonly PendingGroup[]
}

/** Time limit for finding changes that would help, as in `tenon explain`. */
const missesMs = 5000

/** Pending pods, grouped by reason. */
export async function pendingAnswer(snapshot: Snapshot): Promise<PendingAnswer> {
  return await studied(snapshot, async (study) => {
    const explainer = new PodExplainer(study)
    const explained = await explainer.explained(explainer.waiting())
    const { priceUnit } = snapshot.cloud
    return {
      asOf: new Date(snapshot.takenAtMs).toISOString(),
      ...(priceUnit !== undefined && { currency: priceUnit }),
      groups: gathered(explained).map(({ code, pods, workloads, example }) => ({
        code,
        pods,
        workloads,
        summary: example.summary,
        reasons: reasonsOf(example.pending),
        example: { namespace: example.namespace, name: example.name },
      })),
    }
  })
}

type Pending = ExplainedPod['explanation']['pending']

function reasonsOf(pending: Pending): readonly string[] {
  if (pending === undefined) return []
  const { nodePools, nodes } = pending
  return [
    ...nodePools.map(({ nodePool, message }) => `NodePool ${nodePool}: ${message}`),
    ...(nodes?.message === undefined ? [] : [`Existing nodes: ${nodes.message}`]),
  ]
}

/** @returns undefined if there is no such pod. */
export async function explainedPod(
  snapshot: Snapshot,
  namespace: string,
  name: string,
): Promise<Explained | undefined> {
  return await studied(snapshot, async (study) => {
    const pod = study.operator.caches.pods.get({ namespace, name })
    if (pod === undefined) return undefined
    const explanation = await new PodExplainer(study).explain(pod, { missesMs })
    const { misses = [] } = explanation.pending ?? {}
    return { lines: podText(explanation), explanation, misses: misses.map((miss) => missOf(miss, pod)) }
  })
}

function missOf(
  { change, running, waiting, place, pricePerHour }: NonNullable<Pending>['misses'][number],
  pod: Pod,
): MissAnswer {
  const patch = patchOf(change, pod)
  return {
    words: change.words,
    field: change.field,
    running,
    waiting,
    place:
      place.kind === 'node'
        ? `node ${place.name}`
        : `a new ${place.instanceType} of NodePool ${place.nodePool}`,
    ...(pricePerHour !== undefined && { pricePerHour }),
    ...(patch !== undefined && { command: patchCommand(patch) }),
  }
}

/**
 * @param name of a Node or a NodeClaim.
 * @returns undefined if it is unknown.
 */
export async function explainedNode(
  snapshot: Snapshot,
  name: string,
  signal: AbortSignal,
): Promise<Explained | undefined> {
  return await studied(snapshot, async (study) => {
    const explanation =
      (await explainNode(study, 'node', name, signal)) ??
      (await explainNode(study, 'nodeClaim', name, signal))
    return explanation && { lines: nodeText(explanation), explanation }
  })
}

/** @returns undefined if there is no such NodePool. */
export async function explainedNodePool(
  snapshot: Snapshot,
  name: string,
  signal: AbortSignal,
): Promise<Explained | undefined> {
  return await studied(snapshot, async (study) => {
    const explanation = await explainNodePool(study, name, signal, await study.decide())
    return explanation && { lines: nodePoolText(explanation), explanation }
  })
}

/** Opens a study for one answer. */
export async function studied<T>(snapshot: Snapshot, work: (study: Study) => Promise<T>): Promise<T> {
  const study = await Study.open(snapshot)
  try {
    return await work(study)
  } finally {
    await study.close()
  }
}
