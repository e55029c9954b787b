/** Plays one case on virtual time and judges it. */
import { type KubeObject, type Node, type Pod, type ResourceType } from '@tenon/api'
import { ApiError, createCredentials, type Credentials } from '@tenon/devcluster'
import { exoscalePricePerHour } from '@tenon/simulator-exoscale'
import { defaultSettings } from '@tenon/operator'
import { defaultCatalogue, readCatalogue } from '@tenon/provider-kwok'
import { JsonLogger, type LogLevel, type Transport } from '@tenon/runtime'
import { World } from '../world.ts'
import type { Case, Finding, Step } from './case.ts'
import { cleverPrice } from './clever-flavors.ts'
import { csiDriver } from './generate/cluster.ts'
import { Observer } from './observer.ts'
import { couldRun } from './oracles/fresh-nodes.ts'
import { calmStart, noIdleNodes, noUselessNodes, nothingLost, reasonTold } from './oracles/records.ts'
import { LogWatch } from './oracles/log-watch.ts'
import type { PlantedFault } from './planted/planted-fault.ts'
import { playStartupAgent } from './startup-agent.ts'
import { unreadable } from './unreadable.ts'

const second = 1000
const minute = 60 * second
/** Pods that can run do so within this time of the last change. */
const patienceMs = 20 * minute

/** The observations of a case. */
export interface Played {
  readonly findings: readonly Finding[]
  /** Objects that the API server accepted; applying them as a manifest works. */
  readonly accepted: readonly KubeObject[]
  /** When every pod ran for the first time, and the price of the fleet then; undefined if unknown. */
  readonly settled: { readonly atMs: number; readonly pricePerHour: number | undefined } | undefined
  readonly pods: number
  readonly nodes: number
  /** Sorted type names of all launched instances. */
  readonly launched: readonly string[]
}

let credentials: Promise<Credentials> | undefined

/** Receives the log while a case is played. */
export interface Onlooker {
  /** Log level; default: warnings and errors. */
  readonly level: LogLevel
  readonly log: (line: string) => void
}

/** @param fault injected at the ports of the product. */
export async function play(given: Case, fault?: PlantedFault, onlooker?: Onlooker): Promise<Played> {
  credentials ??= createCredentials(Date.UTC(2026, 0, 1))
  const { surroundings } = given
  const { answers = [] } = surroundings
  const watch = new LogWatch()
  let observer: Observer | undefined
  let world: World | undefined
  const clock = { monotonic: () => world?.clock.monotonic() ?? 0 }
  const observed = (inner: Transport, way: 'watchingApi' | 'watchingCloud'): Transport => ({
    send: (request, signal) => (observer?.[way](inner) ?? inner).send(request, signal),
  })
  const written = (line: string): void => {
    watch.write(line)
    onlooker?.log(line)
  }
  const stopListening = watch.listen()
  try {
    world = await World.start({
      seed: given.seed,
      provider: given.provider,
      turns: 1,
      credentials: await credentials,
      logger: new JsonLogger(watch.clock(clock), written, { value: onlooker?.level ?? 'info' }),
      settings: {
        ...given.settings,
        ...fault?.settings,
        featureGates: {
          ...defaultSettings.featureGates,
          ...given.settings.featureGates,
          ...fault?.settings?.featureGates,
        },
      },
      ...(given.catalogue && {
        kwok: { instanceTypes: readCatalogue(JSON.stringify(given.catalogue)).types },
      }),
      ...(surroundings.memoryPercent !== undefined && { kwokMemoryPercent: surroundings.memoryPercent }),
      cluster: clusterOptions(given),
      cloudSettings: cloudSettings(given),
      cleverCloud: { settings: platformSettings(given) },
      apiPath: (inner) => {
        const spoilt = unreadable(observed(inner, 'watchingApi'), 'kubernetes', answers, clock)
        return fault?.api?.(spoilt) ?? spoilt
      },
      cloudPath: (inner) => {
        const spoilt = unreadable(observed(inner, 'watchingCloud'), 'cloud', answers, clock)
        return fault?.cloud?.(spoilt) ?? spoilt
      },
      ...(fault?.provider && { wrapProvider: fault.provider }),
      ...(fault?.decider && { decider: fault.decider }),
    })
    observer = new Observer(world)
    return await playIn(world, observer, watch, given)
  } finally {
    stopListening()
    await world?.stop()
  }
}

function clusterOptions({ surroundings }: Case) {
  const { gitVersion, volumesPerNode, refusedApps = [] } = surroundings
  const extraFilter = ({ metadata }: Pod): string | undefined =>
    refusedApps.includes(metadata.labels?.['app'] ?? '')
      ? 'node(s) were refused by example.com/Gate'
      : undefined
  return {
    recordsOwners: false,
    ...(refusedApps.length > 0 && { scheduler: { extraFilter } }),
    ...(gitVersion !== undefined && { gitVersion }),
    kubelets: {
      leaseRenewMs: minute,
      leaseDurationSeconds: 240,
      statusReportMs: 60 * minute,
      csiDrivers: [{ name: csiDriver, ...(volumesPerNode !== undefined && { volumesPerNode }) }],
    },
    controllers: { nodeMonitorGraceMs: 4 * minute, nodeStartupGraceMs: 4 * minute, recordsEvents: false },
  }
}

function cloudSettings({ surroundings }: Case) {
  const { memoryPercent, soldOut = [], quota = 500 } = surroundings
  return {
    quotas: { instance: quota, gpua30: 64 },
    capacity: Object.fromEntries(soldOut.map((type) => [type, 0])),
    ...(memoryPercent !== undefined && { memoryCapacityPercent: memoryPercent }),
  }
}

/** Resources of the platform's control plane, and more than any case needs. */
const controlPlane = { cpu: 24, memoryGb: 24 }
const plentyOfCpu = 4000

function platformSettings({ surroundings }: Case) {
  const { memoryPercent = 100, quota = plentyOfCpu } = surroundings
  return {
    quota: { cpu: controlPlane.cpu + quota, memoryGb: controlPlane.memoryGb + 2 * plentyOfCpu },
    guestMemoryPercent: memoryPercent,
  }
}

async function playIn(world: World, observer: Observer, watch: LogWatch, given: Case): Promise<Played> {
  const { clock } = world
  const accepted = given.objects.filter((object) => isLetIn(() => create(world, object)))
  playStartupAgent(world)
  if (given.provider === 'clever-cloud')
    for (const flavor of given.surroundings.soldOut ?? [])
      world.cleverCloud.faults.groups.add({ flavor, effect: { kind: 'refuse', reason: 'FlavorUnavailable' } })
  for (const step of given.steps)
    clock.after(step.atMs, () => {
      isLetIn(() => act(world, step))
    })
  await clock.advance(3 * second)
  const { operator } = await world.startOperator()
  const lastMs = lastChange(given)
  if (lastMs > 0) await clock.advance(Math.max(0, lastMs - clock.monotonic()))
  const isWell = await clock.advanceUntil(() => observer.allRun, patienceMs)
  const settled = isWell ? { atMs: clock.monotonic(), pricePerHour: fleetPrice(world, given) } : undefined
  await clock.advance(Math.max(minute, given.minutes * minute - (clock.monotonic() - lastMs)))
  const pods = observer.workloadPods().length
  const launched = launchedTypes(world)
  const findings: Finding[] = [
    ...watch.findings,
    ...nothingLost(observer),
    ...foreignGroupsStay(world, accepted),
    ...calmStart(observer, given),
    ...noUselessNodes(observer, given, clock.monotonic()),
    ...noIdleNodes(observer, given, clock.monotonic()),
    ...reasonTold(observer, given),
  ]
  const stopping = operator.stop()
  await Promise.race([stopping, clock.advance(10 * second)])
  if (!observer.allRun) findings.push(...(await couldRun(world, observer, given)))
  return {
    findings: [...findings, ...watch.findings.filter((each) => !findings.includes(each))],
    accepted,
    settled,
    pods,
    nodes: observer.claims.size,
    launched,
  }
}

/** When the last step or fault is over. */
function lastChange({ steps, surroundings }: Case): number {
  const faults = (surroundings.answers ?? []).map(({ atMs, forMs = 0 }) => atMs + forMs)
  return Math.max(0, ...steps.map(({ atMs }) => atMs), ...faults)
}

/** NodeGroups of users still exist, whatever their labels. */
function foreignGroupsStay(world: World, accepted: readonly KubeObject[]): readonly Finding[] {
  const made = accepted.filter(({ kind }) => kind === 'NodeGroup').map(({ metadata }) => metadata.name)
  if (made.length === 0) return []
  const there = new Set(world.nodeGroups().map(({ metadata }) => metadata.name))
  const gone = made.filter((name) => !there.has(name))
  if (gone.length === 0) return []
  const text = `nobody deleted the NodeGroups ${gone.join(', ')} of the case, and they are gone`
  return [{ oracle: 'nothingLost', text, atMs: world.clock.monotonic() }]
}

function typeOf(world: World, { apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): ResourceType {
  const found = world.cluster.server.local
    .definitions()
    .find(
      (each) =>
        each.kind === kind && apiVersion === (each.group === '' ? '' : `${each.group}/`) + each.version,
    )
  if (found === undefined) throw new Error(`the embedded API server has no kind ${kind} in ${apiVersion}`)
  return found
}

function create(world: World, object: KubeObject): void {
  const type = typeOf(world, object)
  const { namespace = 'default', ...metadata } = object.metadata
  world.create(type, type.namespaced ? { ...object, metadata: { ...metadata, namespace } } : object)
}

function act(world: World, step: Step): void {
  const { local } = world.cluster.server
  if (step.create !== undefined) create(world, step.create)
  if (step.patch !== undefined) {
    const { by, namespace, name } = step.patch
    local.patch(typeOf(world, step.patch), namespace, name, by)
  }
  if (step.delete !== undefined) {
    const { namespace, name } = step.delete
    local.delete(typeOf(world, step.delete), namespace, name, { propagationPolicy: 'Background' })
  }
}

/** The API server may reject objects; that is not a finding. */
function isLetIn(work: () => void): boolean {
  try {
    work()
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** Price of the existing instances. */
function fleetPrice(world: World, { provider, catalogue }: Case): number | undefined {
  if (provider === 'clever-cloud') {
    const own = world.nodeGroups().filter(({ metadata }) => metadata.ownerReferences !== undefined)
    return total(own.map(({ spec }) => cleverPrice(spec.flavor)))
  }
  if (provider === 'exoscale') {
    return total(
      world.cluster.cloud.instances().map(({ type }) => {
        const [family = '', size = ''] = type.split('.')
        return exoscalePricePerHour(family, size)
      }),
    )
  }
  const types = catalogue === undefined ? defaultCatalogue() : readCatalogue(JSON.stringify(catalogue)).types
  const price = ({ metadata }: Node): number | undefined => {
    const own = new Map(Object.entries(metadata.labels ?? {}))
    return types
      .find(({ name }) => name === own.get('node.kubernetes.io/instance-type'))
      ?.offerings.find(({ requirements }) =>
        requirements.every(({ key, values = [] }) => values.includes(own.get(key) ?? '')),
      )?.pricePerHour
  }
  return total(world.nodes().map(price))
}

function total(prices: readonly (number | undefined)[]): number | undefined {
  let sum = 0
  for (const price of prices) {
    if (price === undefined) return undefined
    sum += price
  }
  return sum
}

function launchedTypes(world: World): readonly string[] {
  return world
    .nodes()
    .map(({ metadata }) => metadata.labels?.['node.kubernetes.io/instance-type'] ?? '')
    .toSorted()
}
