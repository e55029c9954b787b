/** Users who switch on what users have asked for (wanted.md), each in a part of the seeds, and change it now and then. */
import {
  autoscalingKinds,
  type Budget,
  type CapacityQuota,
  karpenterKinds,
  kinds,
  labels,
  type Node,
} from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { type Random, rfc3339 } from '@tenon/runtime'
import type { World } from '../../world.ts'
import { namespace, type PodShape, workload, workloadTypes } from './objects.ts'
import { Dice, type WorkloadContext } from './workload-context.ts'

const { deployment } = workloadTypes
const { capacityQuota } = autoscalingKinds
const { nodePool } = karpenterKinds

/** On pods with windows: when these are open, in minutes of the day in UTC, `FROM-TO`. Only invariants read it. */
export const openMinutes = 'world.tenon.sh/open-minutes'
/** Applications of one pod that is replaced before its node is drained; the first one has a PodDisruptionBudget. */
export const surgingApps: readonly string[] = ['solo', 'lone']
/** The condition that makes Nodes unhealthy: kubelets do not write it, and every cloud of this workload repairs it. */
export const ailment = 'NetworkUnavailable'

interface TimeZone {
  readonly name: string
  /** Minutes. */
  readonly offset: number
}

/** Without daylight saving. */
const timeZones: readonly [TimeZone, ...TimeZone[]] = [
  { name: 'Asia/Kolkata', offset: 330 },
  { name: 'Asia/Tokyo', offset: 540 },
  { name: 'America/Phoenix', offset: -420 },
]
const dayMinutes = 24 * 60

/** Options of the controller, which hold from its start. */
export function wantedSettings(random: Random): Pick<Settings, 'featureGates' | 'surgeOnDrain'> {
  const dice = new Dice(random)
  return {
    surgeOnDrain: dice.oneOf<Settings['surgeOnDrain']>(['annotated', 'annotated', 'all', 'off']),
    featureGates: { ...defaultSettings.featureGates, nodeRepair: dice.chance(0.8) },
  }
}

export function wanted(context: WorkloadContext): void {
  annotatePools(context)
  limitEverything(context)
  for (const app of surgingApps) runOne(context, app)
  if (context.dice.chance(0.8)) runInWindows(context)
  makeUnhealthy(context)
}

type Value = string | null

/** Values of annotations of NodePools, and how often each is set. */
const wishes: Readonly<Record<string, readonly [Value, ...Value[]]>> = {
  expiration: ['soft', 'soft', null],
  'expiration-deadline': ['15m', '40m', null, null],
  'expiration-jitter': ['10%', '40%', null],
  'disrupt-zones': ['sequential', 'sequential', null],
  'drift-without-surge': ['true', null, null],
  repair: ['replace', 'reboot,replace', 'off', null, null],
  'repair-budget': ['1', '2', '50%', null],
  'zone-balance': ['5%', null],
}

/** What nobody can read. */
const unreadable = ['', '__proto__', 'NaN', '-1', '1e309', '{"until":1}'] as const

function annotatePools(context: WorkloadContext): void {
  const { dice, world } = context
  const annotate = (pool: string, key: string, value: Value): void =>
    context.patch(nodePool, pool, { metadata: { annotations: { [`tenon.sh/${key}`]: value } } })
  for (const pool of ['general', 'overflow'])
    for (const [key, values] of Object.entries(wishes)) {
      const value = dice.oneOf(values)
      if (value !== null) annotate(pool, key, value)
    }
  if (dice.chance(0.6)) {
    const { name, offset } = dice.oneOf(timeZones)
    const at = local(dice.between(10, 60), offset)
    const closed: Budget = {
      nodes: '0',
      schedule: `${at % 60} ${Math.floor(at / 60)} * * *`,
      duration: '25m',
    }
    const { spec } = world.cluster.server.local.get(nodePool, undefined, 'general') ?? {}
    const budgets = [...(spec?.disruption?.budgets ?? []), closed]
    annotate('general', 'time-zone', name)
    context.patch(nodePool, 'general', { spec: { disruption: { budgets } } })
  }
  context.every(10, 30, () => {
    const [key, values] = dice.oneOf(Object.entries(wishes) as [[string, readonly [Value, ...Value[]]]])
    const value = dice.chance(0.2) ? dice.oneOf(unreadable) : dice.oneOf(values)
    annotate(dice.oneOf(['general', 'overflow']), key, value)
  })
}

/** CapacityQuotas over all nodes, and over those of one NodePool. */
function limitEverything(context: WorkloadContext): void {
  const { dice, nodes } = context
  const cores = (): string => String(Math.max(8, Math.round((nodes * 4 * dice.between(40, 110)) / 100)))
  const count = (): string => String(Math.max(2, Math.round((nodes * dice.between(40, 120)) / 100)))
  const usual: Readonly<Record<'all' | 'general', () => CapacityQuota['spec']>> = {
    all: () => ({ limits: { resources: { cpu: cores(), nodes: count() } } }),
    general: () => ({
      selector: { matchLabels: { 'karpenter.sh/nodepool': 'general' } },
      limits: { resources: dice.chance(0.5) ? { nodes: count() } : { cpu: cores() } },
    }),
  }
  const put = (name: keyof typeof usual): void => context.create(capacityQuota, aQuota(name, usual[name]()))
  if (dice.chance(0.7)) put('all')
  if (dice.chance(0.4)) put('general')
  context.every(8, 25, () => {
    const name = dice.oneOf<keyof typeof usual>(['all', 'all', 'general'])
    if (dice.chance(0.7)) {
      context.patch(capacityQuota, name, { spec: { limits: usual[name]().limits } })
      return
    }
    context.delete(capacityQuota, name)
    context.later(dice.between(1, 15), () => put(name))
  })
}

function aQuota(name: string, spec: CapacityQuota['spec']): CapacityQuota {
  return { apiVersion: 'autoscaling.x-k8s.io/v1beta1', kind: 'CapacityQuota', metadata: { name }, spec }
}

function runOne(context: WorkloadContext, app: string): void {
  const shape: PodShape = { cpu: context.dice.oneOf([300, 1200]), memory: 300 }
  const one = workload(deployment, app, shape, { replicas: 1, progressDeadlineSeconds: 600 })
  const annotations = { 'tenon.sh/surge-on-drain': 'true' }
  context.create(deployment, { ...one, metadata: { ...one.metadata, annotations } })
  if (app !== surgingApps[0]) return
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace },
    spec: { minAvailable: 1, selector: { matchLabels: { app } } },
  }
  context.create(kinds.podDisruptionBudget, budget)
}

/** Pods that may be disrupted for part of each hour or so, by clocks of another time zone. */
function runInWindows(context: WorkloadContext): void {
  const { dice } = context
  const { name, offset } = dice.oneOf(timeZones)
  // In half of the seeds it is the local time that is soon, and the windows are hours away.
  const from = local(dice.between(10, 80), dice.chance(0.5) ? 0 : -offset)
  const to = from + dice.between(20, 50)
  const clock = (minutes: number): string => {
    const at = local(minutes, offset)
    return `${String(Math.floor(at / 60)).padStart(2, '0')}:${String(at % 60).padStart(2, '0')}`
  }
  const annotations = {
    'tenon.sh/disruption-windows': `${clock(from)}-${clock(to)} ${name}`,
    [openMinutes]: `${from}-${to}`,
  }
  const shape: PodShape = { cpu: 400, memory: 300, annotations }
  context.create(deployment, workload(deployment, 'office-hours', shape, { replicas: dice.between(1, 3) }))
  const odd: PodShape = { cpu: 200, memory: 200, annotations: { 'tenon.sh/disruption-windows': 'Someday' } }
  if (dice.chance(0.3)) context.create(deployment, workload(deployment, 'odd-hours', odd, { replicas: 1 }))
}

const local = (minutes: number, offset: number): number => (minutes + offset + dayMinutes) % dayMinutes

/** Nodes turn unhealthy, one by one, many of all or of a zone at once; some are not to be repaired. */
function makeUnhealthy(context: WorkloadContext): void {
  const { dice, world } = context
  const turn = (name: string, status: 'True' | 'False'): void =>
    context.act(`${ailment} ${name} ${status}`, () => setAilment(world, name, status))
  const fallIll = (name: string, minutes: number): void => {
    turn(name, 'True')
    context.later(minutes, () => turn(name, 'False'))
  }
  context.every(4, 12, () => {
    const nodes = world.nodes()
    const zoned = nodes.filter((node) => zoneOf(node) !== undefined)
    const zones = [...Map.groupBy(zoned, zoneOf).values()]
    if (dice.chance(zones.length > 1 ? 0.3 : 0.15)) {
      const minutes = dice.between(5, 40)
      const failing = zones.length > 1 && dice.chance(0.8) ? dice.pick(zones) : nodes
      for (const { metadata } of failing ?? []) if (dice.chance(0.6)) fallIll(metadata.name, minutes)
      return
    }
    const name = dice.pick(nodes)?.metadata.name
    if (name !== undefined) fallIll(name, dice.oneOf([dice.between(1, 4), dice.between(8, 60)]))
  })
  context.every(10, 30, () => {
    const name = dice.pick(world.nodes())?.metadata.name
    if (name === undefined) return
    const veto = (value: Value): void =>
      context.patch(kinds.node, name, { metadata: { annotations: { 'tenon.sh/do-not-repair': value } } })
    veto(dice.oneOf(['true', 'true', 'soon']))
    context.later(dice.between(15, 60), () => veto(null))
  })
}

const zoneOf = ({ metadata }: Node): string | undefined => metadata.labels?.[labels.zone]

function setAilment(world: World, name: string, status: 'True' | 'False'): void {
  const { local: api } = world.cluster.server
  const node = api.get(kinds.node, undefined, name)
  const known = node?.status?.conditions ?? []
  const before = known.find(({ type }) => type === ailment)
  if (node === undefined || (before?.status ?? 'False') === status) return
  const time = rfc3339(world.clock.now())
  const condition = { type: ailment, status, reason: 'World', message: '', lastTransitionTime: time }
  const conditions = [...known.filter((each) => each !== before), condition]
  api.patch<Node>(kinds.node, undefined, name, { status: { conditions } }, 'status')
}

/** When the faults stop: nothing stays unhealthy or out of reach for ever. */
export function endWanted(world: World): void {
  const { local: api } = world.cluster.server
  for (const { metadata } of api.list(capacityQuota)) api.delete(capacityQuota, undefined, metadata.name)
  for (const { metadata } of world.nodes()) {
    setAilment(world, metadata.name, 'False')
    const annotations = { 'tenon.sh/do-not-repair': null }
    api.patch(kinds.node, undefined, metadata.name, { metadata: { annotations } })
  }
}
