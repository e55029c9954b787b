/** The outcome of a round, as numbers for assertions and as text for debugging. */
import { labels, type Node, type NodeClaim, type Pod } from '@tenon/api'
import type { Decisions } from './autoscaler.ts'

/** The cluster at the end of a round. */
export interface Evidence {
  readonly pods: readonly Pod[]
  readonly nodes: readonly Node[]
  readonly claims: readonly NodeClaim[]
  readonly decisions: Decisions
  readonly seconds: number
  readonly podDeleters: readonly string[]
}

export interface Outcome {
  readonly pods: number
  /** User agents that deleted pods before the end; not determined if no pod is missing. */
  readonly podDeleters: readonly string[]
  readonly nodes: number
  /** From the moment when launches were enabled until the last pod was bound, or the timeout. */
  readonly seconds: number
  /** Number of NodeClaims of each decision that launched some. */
  readonly launches: readonly number[]
  /** Passes with pending pods, from the first that launched something. */
  readonly passes: number
  /** `namespace/name` of pods that are not bound. */
  readonly unbound: readonly string[]
  /** Pods that the first launching decision could not place: `namespace/name`, and why. */
  readonly refused: Readonly<Record<string, string>>
  /** Pods that a later decision could not place on the nodes of the first, and why. */
  readonly disowned: Readonly<Record<string, string>>
  /** Names of nodes without a pod of the round. */
  readonly idle: readonly string[]
  /** Pods bound to another node than first planned. */
  readonly displaced: number
  /** Zone of each bound pod, by `namespace/name`. */
  readonly zones: Readonly<Record<string, string>>
  /** Plan and result, node by node, and the scheduler's messages about remaining pods. */
  readonly account: string
}

export function outcomeOf(evidence: Evidence): Outcome {
  const { pods, nodes, decisions, seconds, podDeleters } = evidence
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]))
  const bound = pods.filter((pod) => (pod.spec.nodeName ?? '') !== '')
  const used = new Set(bound.map((pod) => pod.spec.nodeName))
  const zoneOf = (pod: Pod) => byName.get(pod.spec.nodeName ?? '')?.metadata.labels?.[labels.zone] ?? ''
  const reasons = (byUid: ReadonlyMap<string, string>) =>
    Object.fromEntries(
      pods.flatMap((pod) => {
        const reason = byUid.get(pod.metadata.uid ?? '')
        return reason === undefined ? [] : [[keyOf(pod), reason]]
      }),
    )
  return {
    pods: pods.length,
    podDeleters,
    nodes: nodes.length,
    seconds,
    launches: [...decisions.launches],
    passes: decisions.passes,
    unbound: pods
      .filter((pod) => !bound.includes(pod))
      .map(keyOf)
      .toSorted(),
    refused: reasons(decisions.refusals),
    disowned: reasons(decisions.laterRefusals),
    idle: nodes.map(({ metadata }) => metadata.name).filter((name) => !used.has(name)),
    displaced: bound.filter((pod) => isDisplaced(pod, evidence)).length,
    zones: Object.fromEntries(bound.map((pod) => [keyOf(pod), zoneOf(pod)])),
    account: accountOf(evidence),
  }
}

/** One line with the figures of a round. */
export function figures({
  pods,
  nodes,
  seconds,
  launches,
  passes,
  displaced,
  unbound,
  disowned,
}: Outcome): string {
  return (
    `${pods} pods, ${nodes} nodes launched as ${launches.join(' + ')}, ${unbound.length} unbound after ` +
    `${seconds.toFixed(1)} s, ${displaced} elsewhere than planned, ` +
    `${Object.keys(disowned).length} without a place in one of ${passes} passes`
  )
}

const keyOf = ({ metadata }: Pod) => `${metadata.namespace ?? ''}/${metadata.name}`

/** The app of a pod, which identifies it well enough within a round. */
const appOf = ({ metadata }: Pod) =>
  `${(metadata.namespace ?? '').replace(/^proof-/, '')}/${metadata.labels?.['app'] ?? metadata.name}`

function claimOn(nodeName: string | undefined, { claims }: Evidence): string | undefined {
  return claims.find(({ status }) => status?.nodeName === nodeName && nodeName !== undefined)?.metadata.name
}

function isDisplaced(pod: Pod, evidence: Evidence): boolean {
  const planned = evidence.decisions.plan.get(pod.metadata.uid ?? '')
  return planned !== undefined && planned !== claimOn(pod.spec.nodeName, evidence)
}

function accountOf(evidence: Evidence): string {
  const { pods, claims, decisions } = evidence
  const lines = claims
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap((claim) => {
      const { name, labels: tags = {} } = claim.metadata
      const planned = pods.filter((pod) => decisions.plan.get(pod.metadata.uid ?? '') === name)
      const actual = pods.filter((pod) => claimOn(pod.spec.nodeName, evidence) === name)
      const { cpu = '?', memory = '?' } = claim.status?.allocatable ?? {}
      return [
        `${name} ${tags[labels.instanceType] ?? '?'} ${tags[labels.zone] ?? '?'} (${cpu} cpu, ${memory})`,
        `  planned ${counted(planned)}`,
        `  got     ${counted(actual)}`,
      ]
    })
  const troubled = pods.filter(
    (pod) => (pod.spec.nodeName ?? '') === '' || decisions.changes.has(pod.metadata.uid ?? ''),
  )
  return [...lines, ...troubled.map((pod) => troubleOf(pod, evidence))].join('\n')
}

function troubleOf(pod: Pod, evidence: Evidence): string {
  const { plan, changes } = evidence.decisions
  const uid = pod.metadata.uid ?? ''
  const isBound = (pod.spec.nodeName ?? '') !== ''
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const requests = pod.spec.containers.map(({ resources }) => JSON.stringify(resources?.requests ?? {}))
  return (
    `${keyOf(pod)} ${requests.join('+')}: planned for ${plan.get(uid) ?? 'nothing'}, ` +
    `then ${[...(changes.get(uid) ?? [])].join(', ') || 'nothing else'}, ` +
    (isBound ? `bound to ${claimOn(pod.spec.nodeName, evidence)}` : `not bound: ${condition?.message ?? ''}`)
  )
}

/** `3 × a, 1 × b` with CPU and memory of one pod each. */
function counted(pods: readonly Pod[]): string {
  const counts = new Map<string, number>()
  for (const pod of pods) {
    const { cpu = '0', memory = '0' } = pod.spec.containers[0]?.resources?.requests ?? {}
    const name = `${appOf(pod)} (${cpu}, ${memory})`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const parts = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return parts.map(([name, count]) => `${count} × ${name}`).join(', ') || 'nothing'
}
