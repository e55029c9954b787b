/** Fresh Deployments on an empty cluster of one Exoscale family, and what becomes of their pods and nodes. */
import { karpenterKinds, type KubeObject, kinds, labels } from '@tenon/api'
import { exoscaleInstanceTypes, exoscalePricePerHour } from '@tenon/simulator-exoscale'
import { defaultSettings, type Settings } from '@tenon/operator'
import { integerBetween, SeededRandom } from '@tenon/runtime'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

/** Families that need neither a GPU nor its quota. */
export const families = ['standard', 'cpu', 'memory', 'storage'] as const

/** How pods are steered, and on which server. */
export interface Mode {
  readonly gate: Settings['featureGates']['plannedPlacement']
  readonly gitVersion: string
}

export const modes: readonly Mode[] = [
  { gate: 'auto', gitVersion: 'v1.34.1' },
  { gate: 'auto', gitVersion: 'v1.36.0' },
  { gate: false, gitVersion: 'v1.36.0' },
  { gate: true, gitVersion: 'v1.36.0' },
]

const minute = 60_000
const cpus = ['50m', '100m', '250m', '500m', '700m', '800m', '1', '1500m', '2', '3'] as const
const memories = ['64Mi', '128Mi', '256Mi', '512Mi', '1Gi', '2Gi', '3Gi', '4Gi', '6Gi'] as const
const consolidateAfter = ['0s', '30s', '1m'] as const

export interface Drawn {
  readonly seed: number
  readonly family: (typeof families)[number]
  readonly mode: Mode
  /** Deployments, at most. */
  readonly most: number
  /** How long nothing happens once all pods run; 15 unless given. */
  readonly restMinutes?: number
  /** Changes a Deployment before it is created. */
  readonly shaped?: (deployment: KubeObject, name: string) => KubeObject
  /** What happens once all pods run, in place of a time in which nothing does. */
  readonly afterStart?: (world: World) => Promise<void>
}

export interface Outcome {
  /** Pods that were removed. */
  readonly moved: readonly string[]
  readonly pending: number
  /** Types of the nodes that were bought, and of those that are left. */
  readonly bought: readonly string[]
  readonly left: readonly string[]
  /** Age of the youngest of the first pods when one was removed; undefined when none was. */
  readonly movedAtMs: number | undefined
  /** Price per hour of all nodes before a pod was removed, of those of them that went, and of all at the end. */
  readonly prices: { readonly before: number; readonly gone: number; readonly after: number }
  /** For a failing test: what was drawn. */
  readonly story: string
}

/** Plays one cluster for as long as its pods run fifteen minutes, or as long as it says. */
export async function playFresh({
  seed,
  family,
  mode,
  most,
  restMinutes = 15,
  shaped,
  afterStart,
}: Drawn): Promise<Outcome> {
  const random = new SeededRandom(`fresh-${seed}`)
  const pick = <T>(list: readonly T[]): T => list[integerBetween(random, 0, list.length - 1)] as T
  const world = await World.start({
    seed,
    provider: 'exoscale',
    settings: { featureGates: { ...defaultSettings.featureGates, plannedPlacement: mode.gate } },
    cluster: {
      gitVersion: mode.gitVersion,
      kubelets: { leaseRenewMs: minute, leaseDurationSeconds: 240, statusReportMs: 10 * minute },
      controllers: { nodeMonitorGraceMs: 210_000, nodeStartupGraceMs: 240_000 },
    },
  })
  const { clock, cluster } = world
  // Types of this family have disks of 1 TB and more.
  world.create(nodeClassKind, aNodeClass('main', family === 'storage' ? { diskSize: 1000 } : {}))
  const types = exoscaleInstanceTypes.filter((type) => type.family === family).map(({ name }) => name)
  const disruption = {
    consolidationPolicy: 'WhenEmptyOrUnderutilized',
    consolidateAfter: pick(consolidateAfter),
    budgets: [{ nodes: '100%' }],
  } as const
  world.create(karpenterKinds.nodePool, aPool('main', types, { disruption }))
  const running = await world.startOperator()
  await clock.advance(20_000)
  const moved: string[] = []
  let lastPodMs = clock.now()
  let movedAtMs: number | undefined
  let before: readonly string[] = []
  const claimNames = () => world.claims().map(({ metadata }) => metadata.name)
  cluster.server.local.subscribe(kinds.pod, {
    added: ({ metadata }) => {
      if (metadata.namespace === 'default' && before.length === 0) lastPodMs = clock.now()
    },
    deleted: ({ metadata }) => {
      if (metadata.namespace !== 'default') return
      movedAtMs ??= clock.now() - lastPodMs
      moved.push(metadata.name)
    },
  })
  const drawn: string[] = []
  const count = integerBetween(random, 1, most)
  for (let i = 0; i < count; i++) {
    const name = `app-${i}`
    const requests = { cpu: pick(cpus), memory: pick(memories) }
    const replicas = integerBetween(random, 1, 10)
    const deployment = aDeployment(name, replicas, requests)
    world.create(deploymentKind, shaped?.(deployment, name) ?? deployment)
    drawn.push(`${replicas} x ${requests.cpu}/${requests.memory}`)
    if (random.uint32() % 3 === 0) await clock.advance(integerBetween(random, 1, 60) * 1000)
  }
  const typeOf = new Map<string, string>()
  const look = () => {
    for (const { metadata } of world.claims())
      typeOf.set(metadata.name, metadata.labels?.[labels.instanceType] ?? '')
  }
  const waiting = () =>
    world
      .pods()
      .filter(({ metadata, spec }) => metadata.namespace === 'default' && spec.nodeName === undefined)
  for (let slices = 0; slices < 40 && (slices < 4 || waiting().length > 0); slices++) {
    await clock.advance(10_000)
    look()
  }
  before = claimNames()
  if (afterStart === undefined) await clock.advance(restMinutes * minute)
  else await afterStart(world)
  look()
  const after = claimNames()
  const priceOf = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + priceOfType(typeOf.get(name)), 0)
  const gone = before.filter((name) => !after.includes(name))
  const prices = { before: priceOf(before), gone: priceOf(gone), after: priceOf(after) }
  const pending = waiting().length
  const left = world.claims().map(({ metadata }) => typeOf.get(metadata.name) ?? '')
  await world.bury(running)
  await world.stop()
  const story = `seed ${seed}, ${family}, gate ${mode.gate}, ${mode.gitVersion}, consolidateAfter ${disruption.consolidateAfter}: ${drawn.join(', ')}`
  return {
    moved,
    movedAtMs,
    prices,
    pending,
    bought: [...typeOf.values()].toSorted(),
    left: left.toSorted(),
    story,
  }
}

function priceOfType(type = ''): number {
  const [family = '', size = ''] = type.split('.')
  return exoscalePricePerHour(family, size) ?? 0
}
