/** A workload as a whole: its pods, where one more would run, and its price (page.md 3). */
import { counted, type KubeObject, ownerOf, type Pod, priceText, type PricePerHour } from '@tenon/api'
import { costReport } from '../cost/cost.ts'
import { pricedInstances } from '../cost/priced.ts'
import { asOf, type AsOf } from '../explain/as-of.ts'
import { gathered, type PodGroup } from '../explain/gathered.ts'
import { PodExplainer } from '../explain/pod.ts'
import { asOfText, groupText } from '../explain/text.ts'
import { Study } from '../study/study.ts'
import { changedSnapshot, type ObjectName, podsOf } from './changes.ts'

export interface WorkloadExplanation {
  readonly namespace: string
  readonly name: string
  /** Such as `Deployment`. */
  readonly workload: string
  readonly asOf: AsOf
  /** One sentence. */
  readonly summary: string
  readonly pods: WorkloadPods
  /** Its pods without a node, by reason. */
  readonly waiting: readonly WaitingGroup[]
  /** What the next decision would do with one more pod; absent for a DaemonSet, whose pods come with nodes. */
  readonly oneMore?: string
  /** Price per hour of what its pods request; absent if a price is unknown. */
  readonly pricePerHour?: number
  readonly currency?: string
}

export interface WorkloadPods {
  readonly onNodes: number
  /** Without a node, and planned for one. */
  readonly planned: number
  readonly waiting: number
}

export interface WaitingGroup {
  readonly code: string
  readonly pods: number
  readonly summary: string
  readonly example: string
}

interface Explained {
  readonly explanation: WorkloadExplanation
  readonly groups: readonly PodGroup[]
}

/** Workloads of a kind that have pods. */
export function workloadsOf({ operator }: Study, kind: string): readonly ObjectName[] {
  const found = new Map<string, ObjectName>()
  for (const pod of operator.caches.pods.list()) {
    const { kind: of, name } = ownerOf(pod)
    const { namespace = '' } = pod.metadata
    if (of === kind) found.set(`${namespace}/${name}`, { kind, namespace, name })
  }
  return [...found.values()]
}

/** @returns undefined if no pod of the workload is there. */
export async function explainWorkload(study: Study, workload: ObjectName): Promise<Explained | undefined> {
  const { snapshot } = study
  const pods = podsOf(snapshot, workload).filter(({ status }) => !hasEnded(status?.phase))
  if (pods.length === 0) return undefined
  const explainer = new PodExplainer(study)
  const without = await explainer.explained(pods.filter(({ spec }) => (spec.nodeName ?? '') === ''))
  const planned = without.filter(({ explanation }) => explanation.case === 'planned').length
  const groups = gathered(without)
  const { kind, namespace = '', name } = workload
  const oneMore = kind === 'DaemonSet' ? undefined : await summaryOfOneMore(study, workload, pods.length + 1)
  const pricePerHour = requestedPrice(study, workload)
  const { priceUnit } = snapshot.cloud
  const onNodes = pods.length - without.length
  return {
    groups,
    explanation: {
      namespace,
      name,
      workload: kind,
      asOf: asOf(snapshot),
      summary: `${onNodes} of ${counted(pods.length, 'pod')} on nodes, ${planned} planned, ${without.length - planned} waiting`,
      pods: { onNodes, planned, waiting: without.length - planned },
      waiting: groups.map(({ code, pods: count, example }) => ({
        code,
        pods: count,
        summary: example.summary,
        example: example.name,
      })),
      ...(oneMore !== undefined && { oneMore }),
      ...(pricePerHour !== undefined && { pricePerHour }),
      ...(priceUnit !== undefined && { currency: priceUnit }),
    },
  }
}

const hasEnded = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed'

/** Decides about a copy of the cluster in which the workload has one more pod. */
async function summaryOfOneMore(
  { snapshot }: Study,
  object: ObjectName,
  replicas: number,
): Promise<string | undefined> {
  const changed = changedSnapshot(snapshot, [{ kind: 'scale', object, replicas }])
  if ('problem' in changed) return undefined
  const known = new Set(snapshot.objects.map(({ metadata }) => metadata.uid))
  const added = changed.ok.objects.find(
    (each): each is Pod => each.kind === 'Pod' && !known.has(each.metadata.uid),
  )
  if (added === undefined) return undefined
  const study = await Study.open(changed.ok)
  try {
    return (await new PodExplainer(study).explain(added, { missesMs: 0 })).summary
  } finally {
    await study.close()
  }
}

function requestedPrice({ snapshot }: Study, { kind, namespace = '', name }: ObjectName): PricePerHour {
  const { groups } = costReport(pricedInstances(snapshot), 'owner')
  const own = groups.find((group) => group.name === `${namespace}/${kind.toLowerCase()}/${name}`)
  if (own === undefined) return 0
  return own.unpriced === 0 ? own.requestedPerHour : undefined
}

export function workloadText({ explanation, groups }: Explained): readonly string[] {
  const { namespace, name, workload, summary, oneMore, pricePerHour, currency } = explanation
  const unit = currency === undefined ? '' : ` ${currency}`
  return [
    `${workload.toLowerCase()}/${name} in ${namespace}: ${summary}`,
    ...groups.flatMap(groupText),
    ...(oneMore === undefined ? [] : [`One more pod: ${oneMore}`]),
    `Price of what its pods request: ${pricePerHour === undefined ? 'unknown' : `${priceText(pricePerHour)}${unit} per hour`}`,
    asOfText(explanation.asOf),
  ]
}

export function workloadDocument({ explanation }: Explained): KubeObject & WorkloadExplanation {
  const { name, namespace } = explanation
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'WorkloadExplanation',
    metadata: { name, namespace },
    ...explanation,
  }
}
