/** A stage whose pods are scheduled by the embedded cluster, and whose instances join by themselves. */
import type { TestContext } from 'node:test'
import {
  isConditionTrue,
  kinds,
  labels,
  type NodeClaim,
  type Pod,
  type PodGroup,
  podGroupKinds,
  type PodSpec,
} from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { seconds, type Stage } from '../testing/stage.test-support.ts'
import { type GangOptions, type GangStage, liveClaims, openGangs } from './gang-stage.test-support.ts'

const podGroupKind = podGroupKinds.kubernetes.find(({ version }) => version === 'v1alpha2')

/** As {@link openGangs}, with the groups of Kubernetes served by the embedded cluster. */
export async function openPlayed(t: TestContext, options: GangOptions = {}): Promise<GangStage> {
  return await openGangs(t, { areServed: false, ...options })
}

export interface PlayedGroup {
  readonly minCount: number
  /** Label of nodes of which all pods get one value. */
  readonly topologyKey?: string
}

/** A PodGroup of Kubernetes. */
export function playedGroup(stage: Stage, name: string, { minCount, topologyKey }: PlayedGroup): void {
  if (podGroupKind === undefined) throw new Error('no such version')
  stage.world.create<PodGroup>(podGroupKind, {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name, namespace: 'default' },
    spec: {
      schedulingPolicy: { gang: { minCount } },
      ...(topologyKey !== undefined && { schedulingConstraints: { topology: [{ key: topologyKey }] } }),
    },
  })
}

export interface PlayedPods {
  readonly cpu?: string
  readonly from?: number
  readonly spec?: Partial<PodSpec>
}

/** Pods of a group, or, without `group`, ordinary ones, which the embedded scheduler binds. */
export function playedPods(
  stage: Stage,
  name: string,
  count: number,
  { cpu = '3', from = 0, spec }: PlayedPods = {},
  group: string | undefined = name,
): void {
  for (let at = from; at < from + count; at++)
    stage.world.create<Pod>(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${name}-${at}`, namespace: 'default' },
      spec: {
        containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }],
        ...(group !== undefined && { schedulingGroup: { podGroupName: group } }),
        ...spec,
      },
    })
}

/** An ordinary pod for the embedded scheduler. */
export function ordinaryPod(stage: Stage, name: string, parts: PlayedPods = {}): void {
  const { cpu = '1', spec } = parts
  stage.world.create<Pod>(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }],
      ...spec,
    },
  })
}

export interface Boot {
  /** After their launch instances take so long to join. */
  readonly bootMs?: number
  /** How much longer each further one takes. */
  readonly apartMs?: number
}

/** Time passes, and what is launched joins as Ready nodes `node-CLAIM` of the type that was launched. */
export async function play(
  stage: Stage,
  ms: number,
  { bootMs = 20_000, apartMs = 0 }: Boot = {},
): Promise<void> {
  for (const end = stage.now + ms; stage.now < end; await stage.pass(1 * seconds)) {
    for (const [at, claim] of liveClaims(stage).entries()) {
      const { name, creationTimestamp = '' } = claim.metadata
      const joinsAt = Date.parse(creationTimestamp) + bootMs + at * apartMs
      if (!isConditionTrue(claim, 'Launched') || stage.now < joinsAt) continue
      if (stage.nodeNow(`node-${name}`) === undefined) joinReady(stage, claim)
    }
  }
}

function joinReady(stage: Stage, { metadata, status }: NodeClaim): void {
  const name = `node-${metadata.name}`
  stage.world.create(kinds.node, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { [labels.hostname]: name } },
    spec: {
      providerID: `fake://${metadata.name}`,
      taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }],
    },
  })
  const { capacity, allocatable } = status ?? {}
  const at = rfc3339(stage.now)
  const ready = { type: 'Ready', status: 'True', reason: 'Kubelet', message: '' }
  const conditions = [{ ...ready, lastHeartbeatTime: at, lastTransitionTime: at }]
  stage.patch(kinds.node, name, { status: { capacity, allocatable, conditions } }, 'status')
}

/** How many pods with this prefix have a node. */
export function boundOf(stage: Stage, prefix: string): number {
  return stage.world
    .pods()
    .filter(({ metadata, spec }) => metadata.name.startsWith(`${prefix}-`) && (spec.nodeName ?? '') !== '')
    .length
}

/** Zones of the nodes of pods with this prefix. */
export function zonesOf(stage: Stage, prefix: string): readonly string[] {
  const zones = stage.world.pods().flatMap(({ metadata, spec }) => {
    if (!metadata.name.startsWith(`${prefix}-`) || (spec.nodeName ?? '') === '') return []
    return stage.nodeNow(spec.nodeName ?? '')?.metadata.labels?.[labels.zone] ?? 'none'
  })
  return [...new Set(zones)].toSorted()
}
