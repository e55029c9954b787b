/** A scale-up on nodes, pods and groups that a test gives. */
import type { Node, Pod } from '@tenon/api'
import { PodReader, Snapshot, VolumeIndex } from '@tenon/filters'
import type { NodeGroup } from '@tenon/provider'
import { eventLoopTurns, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { type LoopView, noGroups, type NodeTemplate } from '../model.ts'
import { defaultOptions, type ScaleUpOptions } from '../options/options.ts'
import { FakeGroups } from '../testing/fake-groups.test-support.ts'
import { startMs } from '../testing/objects.test-support.ts'
import { KeptEvents, KeptMetrics } from '../testing/sinks.test-support.ts'
import { PodPlans } from '../placement/pod-plans.ts'
import { expanderChain } from './expanders.ts'
import { ScaleUp, type ScaleUpRegistry, type ScaleUpResult } from './scale-up.ts'
import type { GroupSafety } from './search.ts'

export interface Scene {
  /** A node of each group, like which new ones will be; none = the group has no template. */
  readonly groups: readonly {
    readonly group: NodeGroup
    readonly node?: Node
    readonly pods?: readonly Pod[]
  }[]
  readonly nodes?: readonly Node[]
  readonly running?: readonly Pod[]
  readonly pods: readonly Pod[]
  readonly options?: Partial<ScaleUpOptions>
  readonly safety?: Readonly<Record<string, GroupSafety>>
  readonly faults?: ReadonlyMap<string, string>
  readonly failing?: Readonly<Record<string, 'at once' | 'later'>>
}

export interface Played {
  readonly result: ScaleUpResult
  readonly events: KeptEvents
  readonly metrics: KeptMetrics
  readonly cloud: FakeGroups
  readonly registry: readonly string[]
  /** Target size by group id. */
  readonly sizes: Readonly<Record<string, number>>
  readonly snapshot: Snapshot
}

export async function scaleUp(scene: Scene): Promise<Played> {
  const reader = new PodReader()
  const cloud = new FakeGroups(scene.groups.map(({ group }) => group))
  for (const [id, how] of Object.entries(scene.failing ?? {})) cloud.failing.set(id, how)
  const events = new KeptEvents()
  const metrics = new KeptMetrics()
  const told: string[] = []
  const registry: ScaleUpRegistry = {
    registerScaleUp: (id, delta) => told.push(`scale-up ${id} ${delta}`),
    registerFailedScaleUp: (id, { code }) => told.push(`failed ${id} ${code}`),
  }
  const options = { ...defaultOptions.scaleUp, ...scene.options }
  const random = new SeededRandom('expanders')
  const unused = () => Promise.reject(new Error('this expander is not in the test'))
  const scaling = new ScaleUp({
    options,
    cloud: {
      nodeGroups: cloud,
      registry,
      plans: new PodPlans(() => options.maxBinpackingMs),
      isDryRun: false,
    },
    reporting: { events, metrics, logger: silentLogger },
    chooser: expanderChain(options.expanders, { reader, random, priority: unused, grpc: unused }),
    reader,
    slicing: { clock: new VirtualClock(startMs), turns: eventLoopTurns, sliceMs: 10 },
  })
  const view = viewOf(scene, reader)
  const question = { view, pods: scene.pods, safetyOf: (id: string) => scene.safety?.[id] ?? 'safe' }
  const result = await scaling.run(question, new AbortController().signal)
  await eventLoopTurns.next()
  const sizes = Object.fromEntries(cloud.list().map(({ id, targetSize }) => [id, targetSize]))
  return { result, events, metrics, cloud, registry: told, sizes, snapshot: view.snapshot }
}

function viewOf(scene: Omit<Scene, 'pods'>, reader: PodReader): LoopView {
  const snapshot = new Snapshot({
    reader,
    volumes: new VolumeIndex(),
    namespaces: new Map([['default', {}]]),
  })
  const nodes = scene.nodes ?? []
  for (const node of nodes) snapshot.setNode(node)
  for (const pod of scene.running ?? []) snapshot.assign(pod, pod.spec.nodeName ?? '')
  const templates = new Map(
    scene.groups.flatMap(({ group, node, pods = [] }): [string, NodeTemplate][] =>
      node === undefined ? [] : [[group.id, { node, pods }]],
    ),
  )
  return {
    nowMs: startMs,
    nodes,
    index: {
      ...noGroups,
      groups: new Map(scene.groups.map(({ group }) => [group.id, group])),
      faults: scene.faults ?? new Map(),
    },
    templates,
    instances: new Map(),
    snapshot,
    quotas: [],
    lookups: { controllerOf: () => undefined, disruptionBudgets: [], daemonSets: [], deviceUse: new Map() },
  }
}
