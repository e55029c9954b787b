/** Words for stories about nodes that turn unhealthy. */
import type { TestContext } from 'node:test'
import { annotations, karpenterKinds, kinds, labels, type NodeCondition } from '@tenon/api'
import { defaultSettings } from '@tenon/operator/objects'
import type { RepairPolicy } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import { mediumLabels, openDisruption } from '../disruption/disruption-stage.test-support.ts'
import { minutes, type Stage } from '../testing/stage.test-support.ts'

const policies: readonly RepairPolicy[] = [
  { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 10 * minutes },
  { conditionType: 'Ready', conditionStatus: 'Unknown', tolerationMs: 10 * minutes },
  { conditionType: 'MemoryPressure', conditionStatus: 'True', tolerationMs: 10 * minutes },
]
const featureGates = { ...defaultSettings.featureGates, nodeRepair: true }

/** A world in which nodes are repaired and otherwise stay. */
export async function openRepair(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof openDisruption>[1] = {},
): Promise<Stage> {
  const stage = await openDisruption(t, {
    disruption: { consolidateAfter: 'Never' },
    ...options,
    settings: { ...options.settings, featureGates },
    idle: true,
  })
  stage.cloud.repairPolicies = policies
  if (options.idle !== true) await stage.start()
  return stage
}

/** An initialized node of the NodePool `default`. */
export async function nodeOf(stage: Stage, name: string, zone = 'zone-1'): Promise<void> {
  await stage.ready(name, {}, { labels: { ...mediumLabels, [labels.zone]: zone } })
}

/** The kubelet reports these conditions beside Ready, each since now unless it says otherwise. */
export function turn(stage: Stage, name: string, ...conditions: readonly NodeCondition[]): void {
  const at = rfc3339(stage.now)
  const ready: NodeCondition = { type: 'Ready', status: 'True' }
  const all = conditions.some(({ type }) => type === 'Ready') ? conditions : [ready, ...conditions]
  const before = stage.nodeNow(name)?.status?.conditions ?? []
  const dated = all.map((each) => {
    const same = before.find(({ type, status }) => type === each.type && status === each.status)
    return { lastHeartbeatTime: at, lastTransitionTime: same?.lastTransitionTime ?? at, ...each }
  })
  stage.patch(kinds.node, name, { status: { conditions: dated } }, 'status')
}

export const pressure: NodeCondition = { type: 'MemoryPressure', status: 'True' }
export const relief: NodeCondition = { type: 'MemoryPressure', status: 'False' }
export const silent: NodeCondition = { type: 'Ready', status: 'Unknown' }

export function annotatePool(stage: Stage, values: Readonly<Record<string, string | null>>): void {
  const named = Object.fromEntries(Object.entries(values).map(([key, value]) => [`tenon.sh/${key}`, value]))
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations: named } })
}

export function annotateNode(stage: Stage, name: string, value: string | null): void {
  stage.patch(kinds.node, name, { metadata: { annotations: { 'tenon.sh/do-not-repair': value } } })
}

export const deadlineOf = (stage: Stage, claim: string) =>
  stage.claimNow(claim)?.metadata.annotations?.[annotations.terminationTimestamp]

/** A node of the replacement of `claims` joins, and is ready. */
export async function joinReplacement(stage: Stage, known: readonly string[]): Promise<string> {
  const fresh = stage.world.claims().find(({ metadata }) => !known.includes(metadata.name))
  const name = fresh?.metadata.name ?? ''
  await stage.join(name)
  await stage.report(`node-${name}`)
  return name
}
